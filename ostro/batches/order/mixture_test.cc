// Mixtures: exact counts in every block; later stages and batch sizes change nothing before them.
#include "ostro/batches/order/mixture.h"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

#include "ostro/batches/order/order.h"

namespace ostro::batches {
namespace {

using Stages = std::vector<config::Staged<data::Weights>::Stage>;

data::DataOptions mixture_options(Stages stages, int64_t block) {
  data::DataOptions options;
  for (const char* name : {"code", "math", "web"}) options.components[name].train_urls = {name};
  options.train_weights.stages = std::move(stages);
  options.mixture_block_size = block;
  return options;
}

BatchSchedule schedule_of(std::vector<config::Staged<int64_t>::Stage> stages) {
  config::Staged<int64_t> sizes;
  sizes.stages = std::move(stages);
  return BatchSchedule(sizes);
}

TEST_CASE("batch schedule: the first example of each step") {
  const BatchSchedule s = schedule_of({{0, 3}, {4, 8}, {5, 2}});
  int64_t example = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const int64_t size = step < 4 ? 3 : step < 5 ? 8 : 2;
    CHECK(s.size(step) == size);
    CHECK(s.first_example(step) == example);
    example += size;
  }
  CHECK(s.largest() == 8);
  CHECK(s.is_countable(INT64_MAX / 8));
  CHECK(!s.is_countable(INT64_MAX));
  CHECK(schedule_of({{0, 1024}}).first_example(1'419'999) == 1'419'999 * 1024);
}

TEST_CASE("mixture: counts are exact, by the largest remainders") {
  CHECK(exact_counts({0.9, 0.1}, 2048) == std::vector<int64_t>{1843, 205});
  CHECK(exact_counts({1, 1, 1}, 2048) == std::vector<int64_t>{683, 683, 682});
  CHECK(exact_counts({0, 3, 1}, 8) == std::vector<int64_t>{0, 6, 2});
  CHECK(exact_counts({0.1, 0.2, 0.7}, 10) == std::vector<int64_t>{1, 2, 7});
  CHECK(exact_counts({7e9, 2e9, 1e9}, 10) == std::vector<int64_t>{7, 2, 1});
  uint64_t state = 1;
  for (int i = 0; i < 300; ++i) {
    std::vector<double> weights;
    for (int c = 0; c < 1 + i % 40; ++c) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      weights.push_back(static_cast<double>(state >> 40) + 1);
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::vector<int64_t> counts = exact_counts(weights, 1 + i * 17);
    CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 1 + i * 17);
    for (size_t c = 0; c < counts.size(); ++c)
      CHECK(std::abs(static_cast<double>(counts[c]) - weights[c] / sum * (1 + i * 17)) < 1 + 1e-6);
  }
}

TEST_CASE("mixture: every block has its counts, and each component's numbers come in order without gaps") {
  const data::DataOptions options =
      mixture_options({{0, {{"code", 1}, {"math", 0}, {"web", 3}}}, {7, {{"math", 1}, {"web", 1}}}}, 16);
  const BatchSchedule schedule = schedule_of({{0, 5}, {3, 9}});
  const auto made = Mixture::create(options, schedule, data_key(1));
  REQUIRE(made.ok());
  const int64_t second = schedule.first_example(7);
  REQUIRE(second == 51);
  std::vector<int64_t> next(3, 0);
  std::set<std::vector<size_t>> orders;
  for (int64_t example = 0; example < second + 160; ++example) {
    CHECK(made->counts_before(example) == next);
    const Mixture::Pick pick = (*made)(example);
    CHECK(pick.number == next[pick.component]++);
    if (example >= second) CHECK(pick.component != 0);
  }
  const auto counts_in = [&](int64_t begin, int64_t end) {
    std::vector<int64_t> counts(3, 0);
    std::vector<size_t> order;
    for (int64_t e = begin; e < end; ++e) {
      ++counts[(*made)(e).component];
      order.push_back((*made)(e).component);
    }
    orders.insert(order);
    return counts;
  };
  for (int64_t block = 0; block < 3; ++block)
    CHECK(counts_in(block * 16, block * 16 + 16) == std::vector<int64_t>{4, 0, 12});
  for (int64_t block = 0; block < 10; ++block)
    CHECK(counts_in(second + block * 16, second + block * 16 + 16) == std::vector<int64_t>{0, 8, 8});
  CHECK(orders.size() == 13);
}

TEST_CASE("mixture: what changes from a step on changes nothing before it") {
  const Stages one = {{0, {{"code", 1}, {"math", 2}, {"web", 5}}}};
  Stages two = one;
  two.push_back({11, {{"code", 1}, {"math", 1}, {"web", 1}}});
  const BatchSchedule plain = schedule_of({{0, 6}}), grown = schedule_of({{0, 6}, {11, 10}});
  const auto a = Mixture::create(mixture_options(one, 64), plain, data_key(1)),
             b = Mixture::create(mixture_options(two, 64), grown, data_key(1)),
             other = Mixture::create(mixture_options(one, 64), plain, data_key(2));
  REQUIRE((a.ok() && b.ok() && other.ok()));
  int64_t changed = 0, of_seed = 0;
  for (int64_t example = 0; example < 300; ++example) {
    const auto x = (*a)(example), y = (*b)(example);
    const bool same = x.component == y.component && x.number == y.number;
    if (example < 66) CHECK(same);
    changed += !same;
    of_seed += x.component != (*other)(example).component;
  }
  CHECK(changed > 50);
  CHECK(of_seed > 50);
}

TEST_CASE("mixture: a weight too small for the block is an error that names the block that would do") {
  const auto made = Mixture::create(mixture_options({{0, {{"code", 1}, {"math", 1}, {"web", 998}}}}, 64),
                                    schedule_of({{0, 4}}), data_key(0));
  REQUIRE(!made.ok());
  CHECK(
      made.error().message() ==
      "data.mixture_block_size: of 64 sequences component \"code\" with weight 1 (from step 0 on) gets none; "
      "use 1000 or more, or weight 0");
}

}  // namespace
}  // namespace ostro::batches
