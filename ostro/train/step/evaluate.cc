#include "ostro/train/step/evaluate.h"

#include <fmt/format.h>

#include <numbers>

#include "ostro/train/programs/programs.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

std::string uncounted_text(const HeldOutLoss& loss) {
  const bool named = !loss.uncounted[0].empty();
  return fmt::format(
      "the held-out text{}{} has no token that counts: all its loss weights are 0; raise model.seq_len, at "
      "which rows are cut, or trainer.max_eval_batches",
      named ? " of component " : "", fmt::join(loss.uncounted, ", "));
}

Result<HeldOut> HeldOut::create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const data::DataSet& stores) {
  const models::ModelOptions& model = config.model_options();
  std::vector<data::EvalLoader> loaders;
  std::optional<Error> none;
  for (size_t i = 0; i < stores.parts().size(); ++i) {
    auto loader = data::EvalLoader::create(stores, i, config.data, model.seq_len(),
                                           *config.numerics.leaf_examples, config.trainer.max_eval_batches);
    // A single component may have no held-out text, but at least one must have some.
    if (loader.ok())
      loaders.push_back(std::move(loader).value());
    else if (loader.error().code() == ErrorCode::kInvalidArgument)
      none = loader.error();
    else
      return loader.error();
  }
  if (loaders.empty()) return *none;
  const models::ModelFunctions functions = model.evaluation_functions(vocab, compute_dtype(config));
  ASSIGN_OR_RETURN(auto program, engine.compile(make_eval_program(config, functions)));
  return HeldOut(std::move(loaders), std::move(program));
}

Result<HeldOutLoss> HeldOut::evaluate(const std::vector<runtime::Buffer>& params,
                                      const OnBatch& on_batch) const {
  double all_losses = 0, all_weights = 0;
  double nats = 0, bytes = 0;  // sums over the components that have bits per byte
  HeldOutLoss out;
  for (const data::EvalLoader& loader : loaders_) {
    double loss_sum = 0, weight = 0;
    for (int64_t i = 0; i < loader.batches(); ++i) {
      ASSIGN_OR_RETURN(const data::Batch batch, loader.batch(i));
      std::vector<runtime::Buffer> inputs = params;
      for (runtime::Buffer& b : to_arrays(batch)) inputs.push_back(std::move(b));
      ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> results, program_->run(std::move(inputs)));
      if (on_batch) RETURN_IF_ERROR(on_batch(batch, results[0]));
      loss_sum += results[1].item<double>();
      weight += results[2].item<double>();
    }
    const std::string& name = loader.component_name();
    if (weight == 0) {  // for example, rows were cut before the first token that counts
      out.uncounted.push_back(name);
      continue;
    }
    all_losses += loss_sum;
    all_weights += weight;
    const double loss = loss_sum / weight;
    std::optional<double> bits;
    if (loader.has_bits_per_byte()) {
      bits = loader.bits_per_byte(loss);
      nats += loss * static_cast<double>(loader.reader().stream().tokens());
      bytes += static_cast<double>(loader.text_bytes());
    }
    out.parts.push_back({name, loss, bits, weight});
  }
  if (all_weights == 0) return out;
  out.loss = all_losses / all_weights;
  out.tokens = all_weights;
  if (out.parts.size() == 1) {
    out.bits_per_byte = out.parts[0].bits_per_byte;
  } else if (bytes > 0) {
    out.bits_per_byte = nats / std::numbers::ln2 / bytes;
  }
  if (out.parts[0].component.empty()) out.parts.clear();
  return out;
}

}  // namespace ostro::train
