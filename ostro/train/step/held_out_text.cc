#include "ostro/train/step/held_out_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numbers>

#include "ostro/base/check.h"

namespace ostro::train {

std::string uncounted_text(const HeldOutLoss& loss) {
  const bool named = !loss.uncounted[0].empty();
  return fmt::format(
      "the held-out text{}{} has no token that counts: all its loss weights are 0; raise model.seq_len, at "
      "which rows are cut, or trainer.max_eval_batches",
      named ? " of component " : "", fmt::join(loss.uncounted, ", "));
}

Result<BatchLoss> batch_loss(const LossSums<runtime::Buffer>& sums) {
  BatchLoss out;
  ASSIGN_OR_RETURN(out.loss_sum, sums.loss_sum.scalar<double>());
  ASSIGN_OR_RETURN(out.weight, sums.weight.scalar<double>());
  if (sums.measures.empty()) return out;
  ASSIGN_OR_RETURN(out.correct, sums.measures[0].scalar<double>());  // kPairMeasures
  ASSIGN_OR_RETURN(out.margin, sums.measures[1].scalar<double>());
  return out;
}

Result<HeldOutText> HeldOutText::create(const TrainConfig& config, const batches::DataSet& stores) {
  HeldOutText text;
  std::optional<Error> none;
  for (size_t i = 0; i < stores.parts().size(); ++i) {
    auto loader =
        batches::EvalLoader::create(stores, i, config.data, config.model_options().seq_len(),
                                    *config.numerics.leaf_examples, config.trainer.max_eval_batches);
    // A single component may have no held-out text, but at least one must have some.
    if (loader.ok())
      text.loaders_.push_back(std::move(loader).value());
    else if (loader.error().code() == ErrorCode::kInvalidArgument)
      none = loader.error();
    else
      return loader.error();
  }
  if (text.loaders_.empty()) return *none;
  text.is_pairs_ = data::has_pairs(config.data);
  for (const batches::EvalLoader& loader : text.loaders_) text.batches_ += loader.batches();
  return text;
}

Result<batches::Batch> HeldOutText::batch(int64_t i) const {
  for (const batches::EvalLoader& loader : loaders_) {
    if (i < loader.batches()) return loader.batch(i);
    i -= loader.batches();
  }
  OSTRO_CHECK(false, "no such batch of {}", batches_);
}

HeldOutLoss HeldOutText::loss(const std::vector<BatchLoss>& batches) const {
  OSTRO_CHECK(static_cast<int64_t>(batches.size()) == batches_, "{} losses of {} batches", batches.size(),
              batches_);
  double all_losses = 0, all_weights = 0, all_correct = 0, all_margins = 0;
  double nats = 0, bytes = 0;  // sums over the components that have bits per byte
  HeldOutLoss out;
  auto next = batches.begin();
  for (const batches::EvalLoader& loader : loaders_) {
    double loss_sum = 0, weight = 0, correct = 0, margin = 0;
    for (int64_t i = 0; i < loader.batches(); ++i, ++next) {
      loss_sum += next->loss_sum;
      weight += next->weight;
      correct += next->correct;
      margin += next->margin;
    }
    const std::string& name = loader.component_name();
    if (weight == 0) {  // for example, rows were cut before the first token that counts
      out.uncounted.push_back(name);
      continue;
    }
    all_losses += loss_sum;
    all_weights += weight;
    all_correct += correct;
    all_margins += margin;
    const double loss = loss_sum / weight;
    std::optional<double> bits;
    if (loader.has_bits_per_byte()) {
      bits = loader.bits_per_byte(loss);
      nats += loss * static_cast<double>(loader.reader().stream().tokens());
      bytes += static_cast<double>(loader.text_bytes());
    }
    out.parts.push_back({name, loss, bits, weight});
    if (is_pairs_) out.parts.back().pairs = {correct / weight, margin / weight};
  }
  if (all_weights == 0) return out;
  out.loss = all_losses / all_weights;
  out.tokens = all_weights;
  if (is_pairs_) out.pairs = {all_correct / all_weights, all_margins / all_weights};
  if (out.parts.size() == 1) {
    out.bits_per_byte = out.parts[0].bits_per_byte;
  } else if (bytes > 0) {
    out.bits_per_byte = nats / std::numbers::ln2 / bytes;
  }
  if (out.parts[0].component.empty()) out.parts.clear();
  return out;
}

}  // namespace ostro::train
