#include <doctest/doctest.h>

#include <set>

#include "ostro/fleet/check/check_draw.h"
#include "ostro/fleet/check/detection_for_test.h"
#include "ostro/fleet/check/part_votes.h"
#include "ostro/fleet/check/votes.h"
#include "ostro/numerics/threefry.h"

namespace ostro::fleet {
namespace {

Vote vote(int64_t rank, uint64_t value) { return {rank, {{value, value}}}; }

bool within(int64_t count, std::pair<int64_t, int64_t> interval) {
  return interval.first <= count && count <= interval.second;
}

TEST_CASE("one draws the share of leaves that the rate says, by seed, step and leaf") {
  for (const double rate : {0.01, 0.25, 0.9}) {
    const CheckDraw draw{rate, 7}, other{rate, 8};
    int64_t drawn = 0, arrays = 0, differ = 0;
    for (int64_t step = 1; step <= 200; ++step)
      for (int64_t leaf = 0; leaf < 50; ++leaf) {
        drawn += draw.leaf(step, leaf) ? 1 : 0;
        arrays += draw.array(step, leaf) ? 1 : 0;
        differ += draw.leaf(step, leaf) != other.leaf(step, leaf) ? 1 : 0;
      }
    const auto interval = binomial_interval(10'000, rate, 0.999);
    CHECK(within(drawn, interval));
    CHECK(within(arrays, interval));
    CHECK(within(differ, binomial_interval(10'000, 2 * rate * (1 - rate), 0.999)));
  }
  const CheckDraw none, all{1, 0};
  for (int64_t leaf = 0; leaf < 1000; ++leaf) {
    CHECK_FALSE(none.leaf(1, leaf));
    CHECK(all.leaf(1, leaf));
    CHECK(all.array(1, leaf));
  }
}

TEST_CASE("a leaf is checked by others, and every other worker has its turn") {
  const CheckDraw draw{1, 3};
  for (int64_t workers = 3; workers <= 6; ++workers) {
    std::set<std::pair<int64_t, int64_t>> seen;
    for (int64_t leaf = 0; leaf < 2000; ++leaf) {
      const int64_t owner = leaf % workers;
      const Checkers c = checkers_of(draw, 5, leaf, owner, workers);
      REQUIRE(c.deciders.size() == 1);
      CHECK(std::set{owner, c.second, c.deciders[0]}.size() == 3);
      CHECK((c.second >= 0 && c.second < workers && c.deciders[0] >= 0 && c.deciders[0] < workers));
      if (owner == 0) seen.emplace(c.second, c.deciders[0]);
    }
    CHECK(seen.size() == static_cast<size_t>((workers - 1) * (workers - 2)));
  }
  const Checkers two = checkers_of(draw, 5, 0, 1, 2), one = checkers_of(draw, 5, 0, 0, 1);
  CHECK(two.second == 0);
  CHECK(two.deciders == std::vector<int64_t>{1, 0});
  CHECK(one.second == 0);
  CHECK(one.deciders == std::vector<int64_t>{0});
}

TEST_CASE("a leaf is checked on other machines, where there are some") {
  CheckDraw draw{1, 3};
  draw.machines = machines_of({"a", "x", "a", "b", "b", "c"}, {0, 2, 3, 4, 5});
  CHECK(draw.machines == std::vector<int64_t>{0, 0, 1, 1, 2});
  CHECK(machines_of({}, {0, 1}).empty());
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int64_t leaf = 0; leaf < 2000; ++leaf) {
    const Checkers c = checkers_of(draw, 5, leaf, 0, 5);
    seen.emplace(c.second, c.deciders[0]);
  }
  // Three machines: no two of the three workers share one. Of two, the third shares one with another.
  CHECK(seen == std::set<std::pair<int64_t, int64_t>>{{2, 4}, {3, 4}, {4, 2}, {4, 3}});
  draw.machines = {0, 0, 1};
  for (int64_t leaf = 0; leaf < 100; ++leaf) {
    const Checkers c = checkers_of(draw, 5, leaf, 0, 3);
    CHECK(c.second == 2);
    CHECK(c.deciders == std::vector<int64_t>{1});
  }
  // On one machine, or where each has its own, the draw is that of before.
  CheckDraw one{1, 3}, none{1, 3};
  one.machines = {7, 7, 7, 7};
  for (int64_t leaf = 0; leaf < 100; ++leaf)
    CHECK(checkers_of(one, 5, leaf, leaf % 4, 4).deciders ==
          checkers_of(none, 5, leaf, leaf % 4, 4).deciders);
}

TEST_CASE("the majority names who differs, and no majority names nobody") {
  CHECK(judge({}).agree);
  CHECK(judge({vote(0, 1), vote(2, 1)}).agree);
  const Judgement named = judge({vote(2, 9), vote(0, 1), vote(1, 1)});
  CHECK_FALSE(named.agree);
  CHECK(named.decided);
  CHECK(named.differ == std::vector<int64_t>{2});
  // Two workers, twice each: a fault that passes, a fault that stays, a fault that is new each time.
  CHECK(judge({vote(0, 9), vote(1, 1), vote(0, 1), vote(1, 1)}).differ == std::vector<int64_t>{0});
  CHECK_FALSE(judge({vote(0, 9), vote(1, 1), vote(0, 9), vote(1, 1)}).decided);
  CHECK(judge({vote(0, 9), vote(1, 1), vote(0, 8), vote(1, 1)}).differ == std::vector<int64_t>{0});
  const Judgement three = judge({vote(0, 7), vote(1, 8), vote(2, 9)});
  CHECK_FALSE(three.agree);
  CHECK_FALSE(three.decided);
  CHECK(three.differ.empty());
  CHECK(votes_text({vote(0, 16)}) == "00000000000000100000000000000010 by worker 0");
  CHECK(Disagreement{.differ = {2}}.names(2));
  CHECK_FALSE(Disagreement{.differ = {2}}.names(1));
}

PartRead read(int64_t rank, uint64_t value, int64_t from) { return {rank, {{value, value}}, from}; }

TEST_CASE("who keeps or hands on another value is named, and nobody who may have been given it") {
  using Ranks = std::vector<int64_t>;
  const auto judged = [](std::vector<PartVotes> parts) { return judge_parts(4, parts); };
  CHECK(judged({{"a", {vote(0, 1), vote(2, 1)}, {read(0, 1, 0), read(1, 1, 0)}}}).text.empty());
  // Of two copies none is right, also if one was read by several.
  const Disagreement two = judged({{"a", {vote(0, 1), vote(2, 9)}, {read(1, 1, 0), read(3, 9, 2)}}});
  CHECK(two.state_lost);
  CHECK(two.differ.empty());
  CHECK(two.text.starts_with("step 4: copies differ, and no majority says which is right: cells of a"));
  // A worker that a majority names for another part has no vote: then the other copy is right.
  const PartVotes all{"norm", {vote(0, 1), vote(1, 1), vote(2, 9)}, {}};
  const Disagreement named = judged({{"a", {vote(0, 1), vote(2, 9)}, {}}, all});
  CHECK_FALSE(named.state_lost);
  CHECK(named.differ == Ranks{2});
  // If another part stays undecided, the state is lost all the same.
  const Disagreement lost = judged({{"a", {vote(0, 1), vote(1, 5)}, {}}, all});
  CHECK(lost.state_lost);
  CHECK(lost.differ.empty());
  // 0 owns the part; 2 is in another slice, and passes it on to 3 and 4.
  const auto relayed = [&](uint64_t at_1, uint64_t at_2, uint64_t at_3, uint64_t at_4) {
    return judged({{"a",
                    {vote(0, 1)},
                    {read(0, 1, 0), read(1, at_1, 0), read(2, at_2, 0), read(3, at_3, 2), read(4, at_4, 2)}}})
        .differ;
  };
  CHECK(relayed(1, 9, 9, 9) == Ranks{2});  // changed before it was passed on
  CHECK(relayed(1, 9, 1, 1) == Ranks{2});  // and after
  CHECK(relayed(1, 1, 9, 9) == Ranks{2});  // while it was passed on
  CHECK(relayed(1, 1, 9, 1) == Ranks{3});  // after it came
  CHECK(relayed(9, 9, 9, 9) == Ranks{0});  // while its owner sent it
  CHECK(relayed(1, 9, 9, 7) == Ranks{2});  // 4 has another value than it was given, but 2 is the first
  CHECK(judged({{"a", {vote(0, 1)}, {read(0, 5, 0), read(1, 1, 0)}}}).differ == Ranks{0});
  // The only one that was given the part: it or the giver.
  const Disagreement either = judged({{"a", {vote(0, 1)}, {read(0, 1, 0), read(1, 9, 0)}}});
  CHECK(either.differ.empty());
  CHECK_FALSE(either.state_lost);
  CHECK(either.text.find("nothing says who changed them") != std::string::npos);
}

TEST_CASE("intervals of counts are those of the binomial distribution") {
  CHECK(binomial_interval(10, 0.5, 0.999) == std::pair<int64_t, int64_t>{0, 10});
  CHECK(binomial_interval(10, 0.5, 0.9) == std::pair<int64_t, int64_t>{2, 8});  // 11/1024 and 56/1024 below
  CHECK(binomial_interval(100, 0.5, 0.95) == std::pair<int64_t, int64_t>{40, 60});
  CHECK(found_within(0, 0.5, 10, 8) == 0);
  CHECK(found_within(1, 1, 1, 1) == 1);
  CHECK(found_within(0.5, 0.5, 1, 2) == doctest::Approx(1 - 0.75 * 0.75));
}

// 2,000 runs each: every leaf is wrong with probability `fault`; it is found when it is drawn.
TEST_CASE("planted faults are found within n steps as often as the guide says") {
  constexpr int64_t kRuns = 2000, kLeaves = 8;
  struct Case {
    double fault, check;
    int64_t steps;
  };
  for (const Case& one :
       {Case{0.05, 0.1, 20}, Case{0.01, 0.5, 20}, Case{0.002, 1, 40}, Case{0.2, 0.02, 15}}) {
    int64_t found = 0, found_by_a_weaker_check = 0;
    for (int64_t run = 0; run < kRuns; ++run) {
      const CheckDraw draw{one.check, run}, weaker{one.check / 2, run};
      const auto faults = numerics::fold_in(numerics::key_from_seed(99), static_cast<uint32_t>(run));
      bool finds = false, weak_finds = false;
      for (int64_t step = 1; step <= one.steps; ++step)
        for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
          const auto at = static_cast<uint64_t>(step * kLeaves + leaf);
          if (numerics::random_uniform(faults, at) >= static_cast<float>(one.fault)) continue;
          finds |= draw.leaf(step, leaf);
          weak_finds |= weaker.leaf(step, leaf);
        }
      found += finds ? 1 : 0;
      found_by_a_weaker_check += weak_finds ? 1 : 0;
    }
    CAPTURE(one.fault);
    CAPTURE(one.check);
    const auto interval =
        binomial_interval(kRuns, found_within(one.fault, one.check, one.steps, kLeaves), 0.999);
    CHECK(within(found, interval));
    CHECK_FALSE(within(found_by_a_weaker_check, interval));  // a check of half the rate is seen to be one
  }
}

TEST_CASE("an array that differs is found within n steps as often as the guide says") {
  constexpr int64_t kRuns = 2000;
  for (const auto& [rate, steps] : {std::pair<double, int64_t>{0.02, 30}, {0.2, 4}}) {
    int64_t found = 0;
    for (int64_t run = 0; run < kRuns; ++run) {
      bool finds = false;
      for (int64_t step = 1; step <= steps; ++step) finds |= CheckDraw{rate, run}.array(step, run % 7);
      found += finds ? 1 : 0;
    }
    CAPTURE(rate);
    CHECK(within(found, binomial_interval(kRuns, found_within(1, rate, steps, 1), 0.999)));
  }
}

}  // namespace
}  // namespace ostro::fleet
