// Cross-entropy over the last axis (numerics.md N11), forward and backward, in f32.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/leaves.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::interp {

// With z = 0 the term of z is left out, here and in the gradient.
Result<Buffers> run_cross_entropy(const Call& call) {
  const Axis& axis = call.shape(0).axes.back();
  const auto z = static_cast<float>(call.op.attrs.f64("z", 0.0));
  const std::vector<float> logits = elements<float>(call.in[0]);
  const std::vector<int64_t> targets = integers(call.in[1]);
  const int64_t origin = integers(call.in[2])[0];
  const ContractionLeaves leaves = cut({axis}, call.leaves);
  std::vector<float> losses, maxima, reciprocals, lses;
  for (size_t row = 0; row < targets.size(); ++row) {
    const float* logit = logits.data() + static_cast<int64_t>(row) * axis.size;
    float m = logit[0];
    for (int64_t i = 1; i < axis.size; ++i) m = numerics::max_f32(m, logit[i]);
    m = m + 0.0f;  // -0 becomes +0: both zeros give the same saved value
    std::vector<float> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices)
      partials.push_back(numerics::striped_sum<float>(static_cast<int64_t>(leaf.size()), [&](int64_t i) {
        return numerics::exp2_block(logit[leaf[i]], m, numerics::kLog2e);
      }));
    const float l = join(partials, leaves.counts);
    const float lse = m + numerics::log_f32(l);
    const int64_t target = targets[row] - origin;
    const float loss = lse - (target >= 0 && target < axis.size ? logit[target] : 0.0f);
    losses.push_back(z != 0.0f ? loss + (z * lse) * lse : loss);
    maxima.push_back(m);
    reciprocals.push_back(1.0f / l);
    lses.push_back(lse);
  }
  return Buffers{make_buffer(call.out[0], losses), make_buffer(call.out[1], maxima),
                 make_buffer(call.out[2], reciprocals), make_buffer(call.out[3], lses)};
}

// One worker's part of the sums: m is the maximum over all workers.
Result<Buffers> run_cross_entropy_sum(const Call& call) {
  const Axis& axis = call.shape(0).axes.back();
  const std::vector<float> logits = elements<float>(call.in[0]), m = elements<float>(call.in[1]);
  const ContractionLeaves leaves = cut({axis}, call.leaves);
  std::vector<float> sums;
  for (size_t row = 0; row < m.size(); ++row) {
    const float* logit = logits.data() + static_cast<int64_t>(row) * axis.size;
    std::vector<float> partials;
    for (const std::vector<int64_t>& leaf : leaves.indices)
      partials.push_back(numerics::striped_sum<float>(static_cast<int64_t>(leaf.size()), [&](int64_t i) {
        return numerics::exp2_block(logit[leaf[i]], m[row], numerics::kLog2e);
      }));
    sums.push_back(join(partials, leaves.counts));
  }
  return Buffers{make_buffer(call.out[0], sums)};
}

// w * onehot is a selection: w is subtracted from the target's element alone.
Result<Buffers> run_cross_entropy_grad(const Call& call) {
  const int64_t vocab = call.shape(0).axes.back().size;
  const auto z = static_cast<float>(call.op.attrs.f64("z", 0.0));
  std::vector<float> dlogits = elements<float>(call.in[0]);
  const std::vector<int64_t> targets = integers(call.in[1]);
  const std::vector<float> m = elements<float>(call.in[2]), r = elements<float>(call.in[3]),
                           lse = elements<float>(call.in[4]), w = elements<float>(call.in[5]);
  const int64_t origin = integers(call.in[6])[0];
  for (size_t row = 0; row < targets.size(); ++row) {
    float* d = dlogits.data() + static_cast<int64_t>(row) * vocab;
    const float factor = z != 0.0f ? w[row] + ((2.0f * z) * w[row]) * lse[row] : w[row];
    for (int64_t i = 0; i < vocab; ++i) {
      const float p = numerics::exp2_block(d[i], m[row], numerics::kLog2e) * r[row];
      d[i] = i == targets[row] - origin ? p * factor - w[row] : p * factor;
    }
  }
  return Buffers{make_buffer(call.out[0], dlogits)};
}

}  // namespace ostro::interp
