// The steps that are drawn of an entry: simulated frauds are found as often as the printed chance says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ostro/audit/sample/draw.h"
#include "ostro/base/sha256.h"
#include "ostro/board/replay.h"

namespace ostro::board {
namespace {

// The most `tail` of a binomial distribution's weight that lies below the smallest number of the interval,
// and above the largest.
std::pair<int64_t, int64_t> binomial_interval(int64_t n, double p, double tail) {
  std::vector<double> weight;
  for (int64_t k = 0; k <= n; ++k) {
    const auto N = static_cast<double>(n), K = static_cast<double>(k);
    weight.push_back(std::exp(std::lgamma(N + 1) - std::lgamma(K + 1) - std::lgamma(N - K + 1) +
                              K * std::log(p) + (N - K) * std::log1p(-p)));
  }
  int64_t low = 0, high = n;
  for (double sum = weight[0]; sum <= tail; sum += weight[static_cast<size_t>(low)]) ++low;
  for (double sum = weight.back(); sum <= tail; sum += weight[static_cast<size_t>(high)]) --high;
  return {low, high};
}

// How many of 500 frauds with `wrong` false steps a draw of `count` steps finds; the steps are a stretch, or
// spread over the run.
int64_t found(int64_t steps, int64_t wrong, int64_t count, bool in_a_stretch, int seed) {
  int64_t out = 0;
  for (int i = 0; i < 500; ++i) {
    const auto hash = [&](const char* what) { return sha256_hex(fmt::format("{} {} {}", what, seed, i)); };
    std::set<int64_t> is_false;
    const int64_t first = static_cast<int64_t>(sha256(hash("place"))[0]) % (steps - wrong + 1);
    for (int64_t k = 0; k < wrong; ++k)
      is_false.insert(in_a_stretch ? first + k + 1 : 1 + k * (steps / wrong));
    const std::string challenge = draw_challenge(hash("entry"), hash("head"), fmt::format("beacon {}", i));
    const auto drawn = audit::drawn_steps(hash("run"), challenge, 1, steps, count).value();
    out += std::any_of(drawn.begin(), drawn.end(), [&](int64_t step) { return is_false.contains(step); });
  }
  return out;
}

}  // namespace

TEST_CASE("of 500 simulated frauds, as many are found as the printed chance says") {
  struct Case {
    int64_t steps, wrong, count;
  };
  int seed = 1;
  for (const Case& c : {Case{120, 1, 12}, Case{120, 6, 12}, Case{250, 25, 10}, Case{97, 3, 40}}) {
    const double chance = audit::chance_to_find(c.steps, c.wrong, c.count);
    const auto [low, high] = binomial_interval(500, chance, 0.0005);
    for (const bool in_a_stretch : {false, true}) {
      const int64_t times = found(c.steps, c.wrong, c.count, in_a_stretch, seed++);
      CAPTURE(c.steps);
      CAPTURE(c.wrong);
      CAPTURE(times);
      CHECK(times >= low);
      CHECK(times <= high);
    }
  }
  // The interval is one that a draw of another size misses.
  const auto [low, high] = binomial_interval(500, audit::chance_to_find(120, 6, 12), 0.0005);
  const int64_t fewer = found(120, 6, 6, false, 1);
  CHECK((fewer < low || fewer > high));
}

TEST_CASE("entry, head and beacon all decide the draw") {
  const std::string one = draw_challenge("a", "b", "c");
  CHECK(one.size() == 64);
  CHECK(one == sha256_hex("ostro board 1\na\nb\nc\n"));
  CHECK(one != draw_challenge("x", "b", "c"));
  CHECK(one != draw_challenge("a", "x", "c"));
  CHECK(one != draw_challenge("a", "b", "x"));
}

}  // namespace ostro::board
