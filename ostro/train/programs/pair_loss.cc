#include "ostro/train/programs/pair_loss.h"

#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"

namespace ostro::train {
namespace {

const std::string kSide = "side";

Array serial_sum(const Array& x, const Axes& axes) { return sum(x, axes, Order::kSerial, DType::f64); }

Array chosen_less_rejected(const Array& x) { return index(x, kSide, 0) - index(x, kSide, 1); }

bool is_by_token(PairLossType type) {
  return type == PairLossType::kSigmoidNorm || type == PairLossType::kIpo;
}

// Of `delta`, f64 [batch].
Array loss_of(const DpoObjective& o, const Array& delta) {
  if (o.loss_type == PairLossType::kIpo) return square(cast(delta - 1 / (2 * o.beta), DType::f32));
  const Array z = cast(delta * o.beta, DType::f32);
  if (o.loss_type == PairLossType::kHinge) return relu(1.0 - z);
  const Array right = softplus(-z);
  const double e = o.label_smoothing;
  if (e == 0) return right;
  const Array wrong = softplus(z);
  if (o.loss_type == PairLossType::kRobust) return (right * (1 - e) - wrong * e) / (1 - 2 * e);
  return right * (1 - e) + wrong * e;
}

}  // namespace

models::Batch texts_of_pairs(const models::Batch& pairs) {
  const auto texts = [](const Array& a) {
    return a.valid() ? merge_axes(a, {"batch", kSide}, "batch") : Array();
  };
  models::Batch batch{texts(pairs.tokens), texts(pairs.targets), texts(pairs.loss_mask),
                      texts(pairs.segments)};
  batch.draws = pairs.draws;
  if (batch.draws.first.valid()) batch.draws.first = batch.draws.first * 2;  // two texts each
  return batch;
}

AnswerScores answer_scores(const models::Loss& texts) {
  Scope scope("answers");
  const auto pairs = [](const Array& a) {
    const Array f64 = cast(a, DType::f64);
    return split_axis(f64, "batch", {{"batch", a.size("batch") / 2}, {kSide, 2}});
  };
  const Array weight = pairs(texts.weight);
  return {-serial_sum(weight * pairs(texts.per_token), {"pos"}), serial_sum(weight, {"pos"})};
}

PairLoss pair_loss(const DpoObjective& o, const AnswerScores& scores, const Array& reference) {
  Scope scope("pairs");
  const Array gain = scores.log_prob - reference;
  const Array delta =
      chosen_less_rejected(is_by_token(o.loss_type) ? gain / maximum(scores.tokens, 1.0) : gain);
  const Array there = scores.tokens > 0.0;
  const Array counts = index(there, kSide, 0) & index(there, kSide, 1);
  return {{loss_of(o, delta), cast(counts, DType::f32)}, chosen_less_rejected(gain) * o.beta};
}

std::vector<Array> pair_measures(const PairLoss& pairs) {
  const Array weight = cast(pairs.loss.weight, DType::f64);
  return {serial_sum(weight * cast(pairs.margin > 0.0, DType::f64), {"batch"}),
          serial_sum(weight * pairs.margin, {"batch"})};
}

}  // namespace ostro::train
