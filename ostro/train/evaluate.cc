#include "ostro/train/evaluate.h"

#include "ostro/train/batches.h"
#include "ostro/train/programs.h"

namespace ostro::train {

Result<HeldOut> HeldOut::create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                std::shared_ptr<const data::TokenStore> store) {
  const models::ModelOptions& model = config.model_options();
  ASSIGN_OR_RETURN(data::EvalLoader loader,
                   data::EvalLoader::create(std::move(store), config.data, model.seq_len(),
                                            *config.numerics.leaf_examples, config.trainer.max_eval_batches));
  const models::ModelFunctions functions = model.evaluation_functions(vocab, compute_dtype(config));
  ASSIGN_OR_RETURN(auto program, engine.compile(make_eval_program(config, functions)));
  return HeldOut(std::move(loader), std::move(program));
}

Result<HeldOutLoss> HeldOut::evaluate(const std::vector<runtime::Buffer>& params,
                                      const OnBatch& on_batch) const {
  double loss_sum = 0, weight = 0;
  for (int64_t i = 0; i < loader_.batches(); ++i) {
    ASSIGN_OR_RETURN(const data::Batch batch, loader_.batch(i));
    std::vector<runtime::Buffer> inputs = params;
    for (runtime::Buffer& b : to_arrays(batch)) inputs.push_back(std::move(b));
    ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> out, program_->run(std::move(inputs)));
    if (on_batch) RETURN_IF_ERROR(on_batch(batch, out[0]));
    loss_sum += out[1].item<double>();
    weight += out[2].item<double>();
  }
  if (weight == 0) return invalid_argument("the held-out text has no token that counts");
  const double loss = loss_sum / weight;
  return HeldOutLoss{loss, loader_.bits_per_byte(loss), weight};
}

}  // namespace ostro::train
