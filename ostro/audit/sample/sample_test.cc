// Drawing steps, planning their replay, and cheaters against both.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <set>

#include "ostro/audit/sample/draw.h"
#include "ostro/audit/sample/plan.h"
#include "ostro/base/sha256.h"

namespace ostro::audit {
namespace {

using Draw = std::function<std::vector<int64_t>(const std::string& head, const std::string& challenge)>;

// Runs of 1,000 steps with a state after every 10, of which 20 are drawn.
constexpr int64_t kSteps = 1000, kEvery = 10, kDrawn = 20, kCheaters = 500;

std::vector<int64_t> honest_draw(const std::string& head, const std::string& challenge) {
  auto steps = drawn_steps(head, challenge, 1, kSteps, kDrawn);
  REQUIRE(steps.ok());
  return *steps;
}

// How far away from what is expected `found` of `n` is at a chance of `p`: the chance of as many or more, or
// as many or fewer, whichever is smaller.
double tail(int64_t n, int64_t found, double p) {
  const auto log_of = [&](int64_t k) {
    const auto lg = [](int64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
    return lg(n) - lg(k) - lg(n - k) + static_cast<double>(k) * std::log(p) +
           static_cast<double>(n - k) * std::log1p(-p);
  };
  double below = 0, above = 0;
  for (int64_t k = 0; k <= n; ++k) {
    if (k <= found) below += std::exp(log_of(k));
    if (k >= found) above += std::exp(log_of(k));
  }
  return std::min(below, above);
}

// Where a cheater puts false steps.
using Places = std::function<std::vector<int64_t>(int64_t count, int64_t cheater)>;

// Steps that are replayed only if they are drawn: the last ones before a state.
std::vector<int64_t> before_states(int64_t count, int64_t cheater) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(((i + cheater) % (kSteps / kEvery) + 1) * kEvery);
  return out;
}
// The end of the run.
std::vector<int64_t> last_ones(int64_t count, int64_t) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(kSteps - i);
  return out;
}
std::vector<int64_t> anywhere(int64_t count, int64_t cheater) {
  std::set<int64_t> out;
  for (int64_t i = 0; static_cast<int64_t>(out.size()) < count; ++i)
    out.insert(1 + static_cast<int64_t>(sha256(fmt::format("{} {}", cheater, i))[0] * 256 +
                                        sha256(fmt::format("{} {}", cheater, i))[1]) %
                       kSteps);
  return {out.begin(), out.end()};
}

// How many of the cheaters are found: by a drawn step alone, and by what is replayed for the drawn ones.
struct Found {
  int64_t drawn = 0, replayed = 0;
};
Found found_of(const Draw& draw, const Places& places, int64_t count) {
  std::vector<int64_t> states;
  for (int64_t s = 0; s <= kSteps; s += kEvery) states.push_back(s);
  Found found;
  for (int64_t cheater = 0; cheater < kCheaters; ++cheater) {
    const SamplePlan plan = plan_sample(
        states, draw(sha256_hex(fmt::format("run {}", cheater)), fmt::format("seed {}", cheater)));
    bool drawn = false, replayed = false;
    for (const int64_t step : places(count, cheater)) {
      drawn |= std::binary_search(plan.drawn.begin(), plan.drawn.end(), step);
      for (const Stretch& s : plan.stretches) replayed |= s.from < step && step <= s.to;
    }
    found.drawn += drawn;
    found.replayed += replayed;
  }
  return found;
}

// The fractions at which the rate lies outside of the 99.9 % interval of the chance that is printed.
std::string outside(const Draw& draw, const Places& places, bool worst) {
  std::string out;
  for (const int64_t part : kThousandths) {
    const int64_t count = false_steps_of(kSteps, part);
    const double chance = chance_to_find(kSteps, count, kDrawn);
    const Found found = found_of(draw, places, count);
    if (tail(kCheaters, found.drawn, chance) < 0.0005)
      out += fmt::format("{} of 1000: {} found, chance {:.4f}; ", part, found.drawn, chance);
    if (worst) CHECK(found.replayed == found.drawn);
    CHECK(found.replayed >= found.drawn);
  }
  return out;
}

TEST_CASE("500 cheaters at each fraction are found as often as printed, wherever false steps are") {
  CHECK(outside(honest_draw, before_states, true) == "");
  CHECK(outside(honest_draw, last_ones, false) == "");
  CHECK(outside(honest_draw, anywhere, false) == "");
}

TEST_CASE("a bias of the drawing is found by the same test") {
  const Draw never_last = [](const std::string& head, const std::string& challenge) {
    return *drawn_steps(head, challenge, 1, kSteps - 1, kDrawn);
  };
  CHECK(outside(never_last, last_ones, false) != "");
  // The drawing heeds one byte of the hash only, and takes the remainder.
  const Draw narrow = [](const std::string& head, const std::string& challenge) {
    std::set<int64_t> steps;
    for (int i = 0; steps.size() < kDrawn; ++i)
      steps.insert(1 + sha256(fmt::format("{} {} {}", head, challenge, i))[0] % kSteps);
    return std::vector<int64_t>(steps.begin(), steps.end());
  };
  CHECK(outside(narrow, last_ones, false) != "");
}

TEST_CASE("drawn steps: what chain.md says, of these numbers") {
  const std::string head(64, 'a');
  const auto steps = drawn_steps(head, "lottery of 2026-11-27", 1, 160, 5);
  REQUIRE(steps.ok());
  CHECK(*steps == std::vector<int64_t>{14, 60, 89, 119, 157});
  // Other places of the same steps, another head, another challenge.
  const auto moved = drawn_steps(head, "lottery of 2026-11-27", 101, 260, 5);
  for (size_t i = 0; i < 5; ++i) CHECK((*moved)[i] == (*steps)[i] + 100);
  CHECK(*drawn_steps(std::string(64, 'b'), "lottery of 2026-11-27", 1, 160, 5) != *steps);
  CHECK(*drawn_steps(head, "lottery of 2026-11-28", 1, 160, 5) != *steps);
  // All of them, and a run of a single step.
  CHECK(drawn_steps(head, "x", 1, 9, 9)->size() == 9);
  CHECK(*drawn_steps(head, "x", 7, 7, 1) == std::vector<int64_t>{7});
  for (const auto& bad :
       {drawn_steps(head, "x", 1, 9, 10), drawn_steps(head, "x", 1, 9, 0), drawn_steps(head, "x", 1, 0, 1),
        drawn_steps(head, "", 1, 9, 1), drawn_steps(head, "a\nb", 1, 9, 1)})
    CHECK(bad.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("the chance to find false steps is that of drawing without putting back") {
  CHECK(chance_to_find(10, 1, 3) == doctest::Approx(0.3));
  CHECK(chance_to_find(5, 2, 2) == doctest::Approx(0.7));  // 1 - 3/5 * 2/4
  CHECK(chance_to_find(10, 8, 3) == 1);
  CHECK(chance_to_find(10, 10, 1) == 1);
  CHECK(chance_to_find(10, 0, 10) == 0);
  CHECK(false_steps_of(160, 1) == 1);
  CHECK(false_steps_of(160, 100) == 16);
  CHECK(false_steps_of(1001, 1) == 2);
}

TEST_CASE("each drawn step is replayed from the newest state before it") {
  const SamplePlan plan = plan_sample({0, 4, 8, 12}, {2, 4, 5, 7, 9, 13, 14});
  CHECK(plan.stretches == std::vector<Stretch>{{0, 4}, {4, 7}, {8, 9}, {12, 14}});
  CHECK(plan.steps() == 10);
  // What is replayed besides is no draw, and nothing is replayed twice.
  const SamplePlan ends = plan_sample({0, 5, 10}, {3, 7}, {1, 10});
  CHECK(ends.drawn == std::vector<int64_t>{3, 7});
  CHECK(ends.stretches == std::vector<Stretch>{{0, 3}, {5, 10}});
  CHECK(plan_sample({0, 5, 10}, {5, 9}, {1, 10}).steps() == 10);
  CHECK(plan_sample({0, 5}, {2, 10}, {1, 10}).stretches == std::vector<Stretch>{{0, 2}, {5, 10}});
  CHECK(plan_sample({0}, {160}).steps() == 160);
  CHECK(plan_sample({0, 160}, {160}).stretches == std::vector<Stretch>{{0, 160}});
}

}  // namespace
}  // namespace ostro::audit
