// The price of `ostro lab without`: every part that takes time is in it.
#include "ostro/without/price.h"

#include <doctest/doctest.h>

#include "ostro/without/measured_texts.h"

namespace ostro::without {
namespace {

Removal removal(std::vector<std::string> documents) {
  Removal out;
  for (size_t i = 0; i < documents.size(); ++i) out.ids.push_back({1, 2});
  out.documents = std::move(documents);
  return out;
}

std::vector<std::string> names(const std::vector<MeasuredText>& texts) {
  std::vector<std::string> out;
  for (const MeasuredText& text : texts) out.push_back(text.name);
  return out;
}

TEST_CASE("price: the texts of each state are those compared in all, and its own") {
  RemovalPlan plan{train::TrainConfig(), {}, nullptr, removal({"a:1", "a:2"}), {removal({"a:3"})}};
  plan.seeds = {7};
  std::vector<MeasuredText> compared = texts_of(plan.asked);
  compared.push_back({"other.txt", {4}});
  const auto states = texts_by_state(compared, plan);
  REQUIRE(states.size() == 5);  // the run, without a:1 and a:2, without a:3, and both of the seed
  const std::vector<std::string> all = {"a:1", "a:2", "other.txt"};
  CHECK(names(states[0]) == std::vector<std::string>{"a:1", "a:2", "other.txt", "a:3"});
  CHECK(names(states[1]) == std::vector<std::string>{"a:1", "a:2", "other.txt", "a:1", "a:2"});
  CHECK(names(states[2]) == std::vector<std::string>{"a:1", "a:2", "other.txt", "a:3"});
  CHECK(names(states[3]) == all);
  CHECK(names(states[4]) == all);
}

TEST_CASE("price: beginnings, steps and measuring add up, at the rates of the run") {
  Price price{.steps = 30, .runs = 3, .states = 4, .flops = 300, .measuring_flops = 40};
  const run::Cost run{.flops = 1000, .seconds = 50};
  const int64_t run_steps = 100;
  // A step takes 2 s, of which 1.5 s are for its 10 operations; a session needs 5 s to begin.
  const chain::SessionTimes times{.beginning = 5, .a_step = 2, .computing = 1.5};
  CHECK(price_seconds(price, times, run, run_steps) == doctest::Approx(7 * 5 + 30 * 2 + 40 * 0.15));
  // Without times: as fast as the machine is said to be.
  CHECK(price_seconds(price, {}, run, run_steps) == doctest::Approx(340 * 0.05));
  CHECK(price_seconds(price, {}, {}, run_steps) == 0);
  price.seconds = 101;
  CHECK(price_text(price).starts_with("30 steps in 3 runs, 4 states measured, "));
}

}  // namespace
}  // namespace ostro::without
