#include "ostro/infer/choose.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/threefry.h"

namespace ostro::infer {
namespace {

size_t largest(std::span<const double> values) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[best]) best = i;
  return best;
}

std::vector<double> with_penalties(std::span<const float> logits, const ChoiceOptions& options,
                                   std::span<const int32_t> made) {
  std::vector<double> values(logits.begin(), logits.end());
  if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
    std::map<int32_t, int64_t> counts;
    for (const int32_t token : made) ++counts[token];
    for (const auto& [token, count] : counts) {
      double& value = values[static_cast<size_t>(token)];
      value = (value - static_cast<double>(count) * options.frequency_penalty) - options.presence_penalty;
    }
  }
  for (const auto& [token, bias] : options.bias) values[static_cast<size_t>(token)] += bias;
  return values;
}

// The ids that top_k, min_p and top_p leave, ascending. `scores` are values divided by the temperature.
std::vector<size_t> left_by_limits(std::span<const double> scores, const ChoiceOptions& options) {
  std::vector<size_t> ids(scores.size());
  std::iota(ids.begin(), ids.end(), size_t{0});
  if (options.top_k <= 0 && options.top_p >= 1 && options.min_p <= 0) return ids;
  const auto before = [&](size_t a, size_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < ids.size()) {
    std::nth_element(ids.begin(), ids.begin() + options.top_k, ids.end(), before);
    ids.resize(static_cast<size_t>(options.top_k));
  }
  if (options.top_p < 1 || options.min_p > 0) {
    std::sort(ids.begin(), ids.end(), before);
    std::vector<double> sums;
    const double top = scores[ids[0]];
    double sum = 0;
    for (const size_t id : ids) {
      const double p = numerics::exp_f64(scores[id] - top);
      if (!(p >= options.min_p)) break;
      sum = sum + p;
      sums.push_back(sum);
    }
    const auto end =
        std::find_if(sums.begin(), sums.end(), [&](double so_far) { return so_far >= options.top_p * sum; });
    // Without a sum the first score is infinite: it alone is left.
    const size_t left = end == sums.end() ? sums.size() : static_cast<size_t>(end - sums.begin()) + 1;
    ids.resize(std::max(left, size_t{1}));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The largest of score + Gumbel noise. The uniform number in it is in (0, 1), never 0 or 1: the middle of
// one of 2^32 intervals.
int32_t drawn(std::span<const double> scores, std::span<const size_t> ids, const ChoiceOptions& options,
              int64_t position) {
  numerics::Key key = numerics::key_from_seed(options.seed);
  if (options.choice > 0)
    key = numerics::fold_in(numerics::fold_in(key, "choice"), static_cast<uint32_t>(options.choice));
  key = numerics::fold_in(numerics::fold_in(key, "sample"), static_cast<uint32_t>(position));
  size_t best = ids[0];
  double best_score = 0;
  for (const size_t id : ids) {
    const double u = (static_cast<double>(numerics::random_bits(key, id)) + 0.5) / 4294967296.0;
    const double score = scores[id] - numerics::log_f64(-numerics::log_f64(u));
    if (id == ids[0] || score > best_score) {
      best = id;
      best_score = score;
    }
  }
  return static_cast<int32_t>(best);
}

[[gnu::noinline]] int32_t choose_here(std::span<const float> logits, const ChoiceOptions& options,
                                      std::span<const int32_t> made, int64_t position) {
  std::vector<double> values = with_penalties(logits, options, made);
  if (options.temperature <= 0) return static_cast<int32_t>(largest(values));
  for (double& value : values) value = value / options.temperature;
  return drawn(values, left_by_limits(values, options), options, position);
}

}  // namespace

int32_t choose(std::span<const float> logits, const ChoiceOptions& options, std::span<const int32_t> made,
               int64_t position) {
  const numerics::HostArithmetic guard;
  return choose_here(logits, options, made, position);
}

}  // namespace ostro::infer
