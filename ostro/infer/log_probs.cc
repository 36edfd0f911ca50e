#include "ostro/infer/log_probs.h"

#include <algorithm>
#include <numeric>

#include "ostro/numerics/exp2_sum.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/numerics/sums.h"

namespace ostro::infer {
namespace {

// The largest of max_f32, in lanes, so that the compiler makes vectors of it.
float largest(std::span<const float> x) {
  constexpr size_t kLanes = 32;
  if (x.size() < kLanes) return std::accumulate(x.begin() + 1, x.end(), x[0], numerics::max_f32);
  float lane[kLanes];
  std::copy_n(x.begin(), kLanes, lane);
  const auto take = [&](const float* at) {
    for (size_t i = 0; i < kLanes; ++i) lane[i] = at[i] > lane[i] || at[i] != at[i] ? at[i] : lane[i];
  };
  for (size_t begin = kLanes; begin + kLanes <= x.size(); begin += kLanes) take(x.data() + begin);
  take(x.data() + x.size() - kLanes);
  return std::accumulate(lane + 1, lane + kLanes, lane[0], numerics::max_f32);
}

[[gnu::noinline]] float log_sum(std::span<const float> logits, int64_t vocab_leaves) {
  const float most = largest(logits) + 0.0F;
  std::vector<float> partials;
  for (const auto& leaf : numerics::leaf_bounds("vocab", static_cast<int64_t>(logits.size()), vocab_leaves))
    partials.push_back(numerics::exp2_block_sum(
        logits.subspan(static_cast<size_t>(leaf.begin), static_cast<size_t>(leaf.size())), most,
        numerics::kLog2e));
  return most + numerics::log_f32(numerics::tree_sum<float>(partials));
}

}  // namespace

LogProbs::LogProbs(std::span<const float> logits, int64_t vocab_leaves) : logits_(logits) {
  const numerics::HostArithmetic guard;
  lse_ = log_sum(logits, vocab_leaves);
}

float LogProbs::of(int32_t token) const {
  const numerics::HostArithmetic guard;
  return -(lse_ - logits_[static_cast<size_t>(token)]);
}

std::vector<int32_t> LogProbs::most_likely(int64_t count, int64_t tokens) const {
  std::vector<int32_t> ids(std::min(static_cast<size_t>(tokens), logits_.size()));
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<int64_t>(count, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits_[static_cast<size_t>(a)], y = logits_[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  ids.erase(end, ids.end());
  return ids;
}

}  // namespace ostro::infer
