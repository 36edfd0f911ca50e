#include "ostro/infer/choose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
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

// Sorts ids by descending score, equal ones as they stand: a radix sort, since there may be as many as the
// vocabulary has. Its digits are bytes, from the last one on; one that all have is skipped.
void sort_by_score(std::vector<size_t>& ids, std::span<const double> scores) {
  struct Entry {
    uint64_t key;  // ascends where the score descends; the zeros are one
    size_t id;
  };
  std::vector<Entry> entries(ids.size()), sorted(ids.size());
  std::array<std::array<size_t, 256>, 8> counts{};
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto bits = std::bit_cast<uint64_t>(scores[ids[i]] + 0.0);
    const uint64_t key = bits >> 63 != 0 ? bits : ~bits & ~(uint64_t{1} << 63);
    entries[i] = {key, ids[i]};
    for (size_t digit = 0; digit < 8; ++digit) ++counts[digit][key >> (8 * digit) & 255];
  }
  for (size_t digit = 0; digit < 8; ++digit) {
    auto& count = counts[digit];
    if (std::find(count.begin(), count.end(), ids.size()) != count.end()) continue;
    std::exclusive_scan(count.begin(), count.end(), count.begin(), size_t{0});
    for (const Entry& entry : entries) sorted[count[entry.key >> (8 * digit) & 255]++] = entry;
    entries.swap(sorted);
  }
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = entries[i].id;
}

bool has_limits(const ChoiceOptions& options, size_t vocab) {
  return (options.top_k > 0 && static_cast<size_t>(options.top_k) < vocab) || options.top_p < 1 ||
         options.min_p > 0;
}

// The `count` ids with the largest scores, of equal ones the lower, ascending.
std::vector<size_t> largest_ids(std::span<const double> scores, size_t count) {
  std::vector<double> best(count);
  std::partial_sort_copy(scores.begin(), scores.end(), best.begin(), best.end(), std::greater<>());
  const double least = best.back();
  auto equal = static_cast<size_t>(std::count(best.begin(), best.end(), least));
  std::vector<size_t> out;
  for (size_t id = 0; id < scores.size(); ++id) {
    if (scores[id] < least || (scores[id] == least && equal == 0)) continue;
    if (scores[id] == least) --equal;
    out.push_back(id);
  }
  return out;
}

std::vector<size_t> all_ids(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), size_t{0});
  return out;
}

// The ids that top_k, min_p and top_p leave, ascending. `scores` are values divided by the temperature.
std::vector<size_t> left_by_limits(std::span<const double> scores, const ChoiceOptions& options) {
  const bool counts = options.top_k > 0 && static_cast<size_t>(options.top_k) < scores.size();
  std::vector<size_t> ids =
      counts ? largest_ids(scores, static_cast<size_t>(options.top_k)) : all_ids(scores.size());
  if (options.top_p < 1 || options.min_p > 0) {
    sort_by_score(ids, scores);
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
    std::vector<bool> taken(scores.size());
    for (const size_t id : std::span(ids).first(std::max(left, size_t{1}))) taken[id] = true;
    ids.clear();
    for (size_t id = 0; id < taken.size(); ++id)
      if (taken[id]) ids.push_back(id);
  }
  return ids;
}

constexpr size_t kLanes = 16;
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));

// Random bits of a token, in parts of 2^32, as a number that is in (0, 1), never 0 or 1: the middle of one of
// 2^32 intervals.
double uniform(uint32_t bits) { return (static_cast<double>(bits) + 0.5) / 4294967296.0; }

// What the noise of random bits is at most, by the length of their complement c: with u = uniform(bits),
// -log(-log(u)) <= -log(1 - u), and 1 - u = (c + 0.5) / 2^32. The margin is beyond what log_f64 rounds.
std::array<double, 33> most_noise() {
  std::array<double, 33> out{};
  for (size_t length = 0; length < out.size(); ++length)
    out[length] = static_cast<double>(33 - length) * 0.6931471805599454 + 1e-9;
  return out;
}

// The largest of score + Gumbel noise, of equal ones the lowest id. Logarithms cost most, so they are
// computed only of tokens that may exceed the one with the largest score: a sum is not smaller where the
// noise is at most `most_noise`, since rounding keeps the order.
// `id_at(i)` for i < n are the ids, ascending.
template <typename IdAt>
int32_t drawn(std::span<const double> scores, size_t n, const IdAt& id_at, const ChoiceOptions& options,
              int64_t position) {
  static const std::array<double, 33> kMost = most_noise();
  numerics::Key key = numerics::key_from_seed(options.seed);
  if (options.choice > 0)
    key = numerics::fold_in(numerics::fold_in(key, "choice"), static_cast<uint32_t>(options.choice));
  key = numerics::fold_in(numerics::fold_in(key, "sample"), static_cast<uint32_t>(position));
  size_t best = id_at(0);
  if (std::isnan(scores[best])) return static_cast<int32_t>(best);  // nothing is larger than it
  const auto noisy = [&](size_t id, uint32_t bits) {
    return scores[id] - numerics::log_f64(-numerics::log_f64(uniform(bits)));
  };
  for (size_t i = 1; i < n; ++i)
    if (scores[id_at(i)] > scores[best]) best = id_at(i);
  double best_score = noisy(best, numerics::random_bits(key, best));
  for (size_t begin = 0; begin < n; begin += kLanes) {
    const size_t count = std::min(kLanes, n - begin);
    bool any = false;
    for (size_t lane = 0; lane < count; ++lane) any |= !(scores[id_at(begin + lane)] + kMost[0] < best_score);
    if (!any) continue;
    Words x0{}, x1{};
    for (size_t lane = 0; lane < count; ++lane) x1[lane] = static_cast<uint32_t>(id_at(begin + lane));
    numerics::threefry_rounds(key, x0, x1);
    const Words bits = x0 ^ x1;
    for (size_t lane = 0; lane < count; ++lane) {
      const size_t id = id_at(begin + lane);
      if (scores[id] + kMost[static_cast<size_t>(std::bit_width(~bits[lane]))] < best_score) continue;
      const double score = noisy(id, bits[lane]);
      if (score > best_score || (score == best_score && id < best)) {
        best = id;
        best_score = score;
      }
    }
  }
  return static_cast<int32_t>(best);
}

[[gnu::noinline]] int32_t choose_here(std::span<const float> logits, const ChoiceOptions& options,
                                      std::span<const int32_t> made, int64_t position) {
  std::vector<double> values = with_penalties(logits, options, made);
  if (options.temperature <= 0) return static_cast<int32_t>(largest(values));
  for (double& value : values) value = value / options.temperature;
  if (!has_limits(options, values.size()))
    return drawn(values, values.size(), [](size_t i) { return i; }, options, position);
  const std::vector<size_t> ids = left_by_limits(values, options);
  return drawn(values, ids.size(), [&](size_t i) { return ids[i]; }, options, position);
}

}  // namespace

int32_t choose(std::span<const float> logits, const ChoiceOptions& options, std::span<const int32_t> made,
               int64_t position) {
  const numerics::HostArithmetic guard;
  return choose_here(logits, options, made, position);
}

}  // namespace ostro::infer
