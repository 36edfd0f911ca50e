// Choosing, against N19 said again in plain words, and log-probabilities.
#include "ostro/infer/choose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ostro/infer/log_probs.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"
#include "ostro/numerics/threefry.h"

namespace ostro::infer {
namespace {

const std::vector<float> kLogits{0.5F, 2, 2, -1};

TEST_CASE("temperature 0 takes the largest, of equal ones the lower id") {
  CHECK(choose(kLogits, {.seed = 9}, {}, 0) == 1);
  CHECK(choose(kLogits, {.top_k = 1, .top_p = 0.1, .min_p = 1}, {}, 5) == 1);
}

TEST_CASE("frequencies over positions follow the softmax") {
  std::vector<int> counts(4);
  for (int64_t p = 0; p < 4000; ++p)
    ++counts[static_cast<size_t>(choose(kLogits, {.temperature = 1, .seed = 9}, {}, p))];
  double total = 0;
  for (const float l : kLogits) total += std::exp(static_cast<double>(l));
  for (size_t i = 0; i < 4; ++i)
    CHECK(std::abs(counts[i] / 4000.0 - std::exp(static_cast<double>(kLogits[i])) / total) < 0.04);
}

// The ids that come up in 500 positions.
std::set<int32_t> seen(const ChoiceOptions& options, const std::vector<float>& logits = kLogits) {
  std::set<int32_t> out;
  for (int64_t p = 0; p < 500; ++p) out.insert(choose(logits, options, {}, p));
  return out;
}

TEST_CASE("top_k, min_p and top_p leave the most likely ones") {
  using Ids = std::set<int32_t>;
  CHECK(seen({.temperature = 3}) == Ids{0, 1, 2, 3});
  CHECK(seen({.temperature = 3, .top_k = 1}) == Ids{1});
  CHECK(seen({.temperature = 3, .top_k = 3}) == Ids{0, 1, 2});
  CHECK(seen({.temperature = 3, .top_k = 99}) == Ids{0, 1, 2, 3});
  // Of the most likely one's probability: 1, 1, exp(-0.5), exp(-1).
  CHECK(seen({.temperature = 3, .min_p = 0.5}) == Ids{0, 1, 2});
  CHECK(seen({.temperature = 3, .min_p = 1}) == Ids{1, 2});
  // Shares: 0.336, 0.336, 0.204, 0.124.
  CHECK(seen({.temperature = 3, .top_p = 0.33}) == Ids{1});
  CHECK(seen({.temperature = 3, .top_p = 0.34}) == Ids{1, 2});
  CHECK(seen({.temperature = 3, .top_p = 0.68}) == Ids{0, 1, 2});
  CHECK(seen({.temperature = 3, .top_k = 2, .top_p = 0.51}) == Ids{1, 2});
  CHECK(seen({.temperature = 3, .top_p = 1e-9}) == Ids{1});
  // A score that is infinite, so that no probability is a number, is left alone.
  CHECK(seen({.temperature = 3e-308, .top_p = 0.9, .bias = {{3, 100}}}) == Ids{3});
}

TEST_CASE("limits keep the noise of an id: what both allow is chosen alike") {
  int same = 0;
  for (int64_t p = 0; p < 300; ++p) {
    const int32_t free = choose(kLogits, {.temperature = 1, .seed = 3}, {}, p);
    if (free != 1 && free != 2) continue;
    ++same;
    CHECK(choose(kLogits, {.temperature = 1, .seed = 3, .top_k = 2}, {}, p) == free);
  }
  CHECK(same > 100);
}

TEST_CASE("penalties and biases change the logits; the choice's number changes the noise") {
  CHECK(choose(kLogits, {.presence_penalty = 0.1}, std::vector<int32_t>{1}, 1) == 2);
  CHECK(choose(kLogits, {.frequency_penalty = 0.1}, std::vector<int32_t>{1, 2, 2}, 3) == 1);
  CHECK(choose(kLogits, {.presence_penalty = -0.1}, std::vector<int32_t>{2}, 1) == 2);
  CHECK(choose(kLogits, {.bias = {{3, 3.5}}}, {}, 0) == 3);
  CHECK(choose(kLogits, {.bias = {{1, -100}, {2, -100}}}, {}, 0) == 0);
  int differ = 0;
  for (int64_t p = 0; p < 100; ++p)
    differ +=
        choose(kLogits, {.temperature = 1, .choice = 1}, {}, p) != choose(kLogits, {.temperature = 1}, {}, p);
  CHECK(differ > 10);
}

// N19 written again, without anything that is skipped: sorts what is left by score, and adds noise to all of
// it.
int32_t plain_choice(const std::vector<float>& logits, const ChoiceOptions& options, int64_t position) {
  std::vector<std::pair<double, int32_t>> left;
  for (size_t i = 0; i < logits.size(); ++i)
    left.emplace_back(static_cast<double>(logits[i]) / options.temperature, static_cast<int32_t>(i));
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  });
  if (options.top_k > 0) left.resize(std::min(left.size(), static_cast<size_t>(options.top_k)));
  double sum = 0, so_far = 0;
  for (const auto& [score, id] : left) sum += numerics::exp_f64(score - left[0].first);
  size_t count = 0;
  while (count < left.size() && (count == 0 || so_far < options.top_p * sum))
    so_far += numerics::exp_f64(left[count++].first - left[0].first);
  if (options.top_p < 1) left.resize(count);
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const numerics::Key key = numerics::fold_in(
      numerics::fold_in(numerics::key_from_seed(options.seed), "sample"), static_cast<uint32_t>(position));
  int32_t best = -1;
  double most = 0;
  for (const auto& [score, id] : left) {
    const double u = (numerics::random_bits(key, static_cast<uint64_t>(id)) + 0.5) / 4294967296.0;
    const double g = score - numerics::log_f64(-numerics::log_f64(u));
    if (best < 0 || g > most) best = id, most = g;
  }
  return best;
}

TEST_CASE("the formula of N19, written again") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int kind = 0; kind < 6; ++kind) {
    std::vector<float> logits;
    for (int i = 0; i < 3001; ++i) {
      const auto drawn = static_cast<float>(numerics::random_bits({1, 2}, static_cast<uint64_t>(i)) % 4001);
      logits.push_back(kind == 0 ? 0 : (drawn - 2000) / (kind == 1 ? 16.0F : 128.0F));  // equal; steep; flat
    }
    if (kind == 3) logits[77] = logits[900] = 300;
    if (kind == 4) logits[0] = -kInfinity, logits[1500] = -kInfinity, logits[3000] = -0.0F, logits[5] = 1e30F;
    if (kind == 5) logits.assign(40, -kInfinity);
    for (int64_t position = 0; position < 12; ++position)
      for (const ChoiceOptions& options :
           std::vector<ChoiceOptions>{{.temperature = 0.7, .seed = 5},
                                      {.temperature = 20, .seed = 6},
                                      {.temperature = 1, .seed = 7, .top_p = 0.9},
                                      {.temperature = 2, .seed = 8, .top_k = 37}}) {
        CAPTURE(kind);
        if (kind == 5 && options.top_p < 1) continue;  // no probability is a number
        CHECK(choose(logits, options, {}, position) == plain_choice(logits, options, position));
      }
  }
  std::vector<float> nan(100, 1.0F);  // what is larger than no number is never chosen behind it
  nan[0] = std::nanf("");
  CHECK(choose(nan, {.temperature = 1}, {}, 3) == 0);
  std::swap(nan[0], nan[9]);
  CHECK(choose(nan, {.temperature = 1}, {}, 3) != 9);
}

// The largest logit and the sum of exponentials one after the other.
TEST_CASE("log-probabilities are those of N11, for every length of a row") {
  for (const int size : {1, 5, 31, 32, 33, 64, 100, 1000}) {
    std::vector<float> logits;
    for (int i = 0; i < size; ++i) logits.push_back(static_cast<float>((i * 7919 + size) % 513) / 16 - 20);
    float most = logits[0];
    for (const float logit : logits) most = numerics::max_f32(most, logit);
    const float sum = numerics::striped_sum<float>(size, [&](int64_t i) {
      return numerics::exp2_block(logits[static_cast<size_t>(i)], most, numerics::kLog2e);
    });
    const LogProbs probs(logits, 1);
    CHECK(probs.of(size / 2) == -((most + numerics::log_f32(sum)) - logits[static_cast<size_t>(size / 2)]));
    logits[static_cast<size_t>(size / 2)] = std::nanf("");
    CHECK(std::isnan(LogProbs(logits, 1).of(0)));
  }
}

TEST_CASE("log-probabilities add up to one, and the most likely come first") {
  const LogProbs probs(kLogits, 1);
  double sum = 0;
  for (int32_t i = 0; i < 4; ++i) sum += std::exp(static_cast<double>(probs.of(i)));
  CHECK(std::abs(sum - 1) < 1e-6);
  CHECK(probs.most_likely(3, 4) == std::vector<int32_t>{1, 2, 0});
  CHECK(probs.most_likely(9, 2) == std::vector<int32_t>{1, 0});
  CHECK(probs.most_likely(0, 4).empty());
}

}  // namespace
}  // namespace ostro::infer
