// Choosing, against N19 said again in plain words, and log-probabilities.
#include "ostro/infer/choose.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ostro/infer/log_probs.h"
#include "ostro/numerics/functions.h"
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

TEST_CASE("the formula of N19, written again") {
  std::vector<float> logits;
  for (int i = 0; i < 200; ++i) logits.push_back(static_cast<float>((i * 37) % 61) / 16);
  for (int64_t position = 0; position < 50; ++position) {
    const numerics::Key key = numerics::fold_in(numerics::fold_in(numerics::key_from_seed(5), "sample"),
                                                static_cast<uint32_t>(position));
    int32_t best = -1;
    double most = -1e300;
    for (size_t i = 0; i < logits.size(); ++i) {
      const double u = (numerics::random_bits(key, i) + 0.5) / 4294967296.0;
      const double g = static_cast<double>(logits[i]) / 0.7 - numerics::log_f64(-numerics::log_f64(u));
      if (g > most) best = static_cast<int32_t>(i), most = g;
    }
    CHECK(choose(logits, {.temperature = 0.7, .seed = 5}, {}, position) == best);
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
