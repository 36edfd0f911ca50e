// Unequal shares give the bits of one worker; what is sent with them is known to the byte; workers of unequal
// speed come to them, and a worker that slows down gets less.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <numeric>
#include <random>
#include <set>

#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

constexpr int64_t kLeaves = 7;

Setup setup_of(const config::IntMap& axes, bool model_axis) {
  train::TrainConfig c = tiny_config(kLeaves, {{"embed", 12}});
  train::llama(c).num_kv_heads = 2;
  c.numerics.leaves = {{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}};
  c.trainer.sharding.mesh.axes = axes;
  c.trainer.sharding.shares = train::LeafSharing::kMeasured;
  if (model_axis) c.trainer.sharding.tensor_parallel_axes = {"kv_heads", "mlp", "vocab"};
  return make_setup(std::move(c));
}

std::vector<int64_t> drawn_counts(std::mt19937& rng, int64_t leaves, int64_t workers) {
  std::vector<int64_t> counts(static_cast<size_t>(workers));
  for (int64_t leaf = 0; leaf < leaves; ++leaf)
    ++counts[std::uniform_int_distribution<size_t>(0, counts.size() - 1)(rng)];
  return counts;
}

int64_t sent_in_a_step(const train::StepRunner& runner) {
  int64_t bytes = 0;
  for (const train::WorkerLoad& load : runner.loads(kLeaves)) bytes += load.total_sent();
  return bytes;
}

TEST_CASE("shares: drawn ones on meshes and in slices give the bits of one worker, and send what is said") {
  struct Case {
    int64_t workers;
    config::IntMap axes;
    std::vector<std::string> slices;
    bool model_axis = false;
  };
  const std::vector<Case> cases{
      {3, {{"data", -1}}, {}},
      {5, {{"data", -1}}, {}},
      {4, {{"replica", 2}, {"data", -1}}, {}},
      {6, {{"data", -1}, {"model", 2}}, {}, true},
      {4, {{"data", -1}}, {"a", "a", "b", "b"}},
      {5, {{"data", -1}}, {"a", "b", "b", "c", "c"}},
      {8, {{"data", -1}, {"model", 2}}, {"a", "a", "a", "a", "b", "b", "b", "b"}, true},
  };
  const auto engine = compiled_engine();
  std::mt19937 rng(5);
  for (const Case& c : cases) {
    const Setup s = setup_of(c.axes, c.model_axis);
    const Trail alone = train_alone(s, 2);
    for (int i = 0; i < 2; ++i) {
      WorkerOptions options = worker_options(s.config, c.workers, c.slices).value();
      CHECK(options.measured_shares);
      const std::vector<int64_t> counts = drawn_counts(rng, kLeaves, c.workers / (c.model_axis ? 2 : 1));
      options.shares = LeafShares(counts);
      auto runner = make_worker_runner(s.programs, *engine, "none", options);
      REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
      const int64_t said = sent_in_a_step(**runner);
      const Trail trail = train(s, **runner, *engine, 2);
      CHECK_MESSAGE(same(trail, alone),
                    fmt::format("{} leaves, slices {}", fmt::join(counts, ":"), fmt::join(c.slices, " ")));
      CHECK(trail.bytes == 2 * said);
    }
  }
}

TEST_CASE("shares: checked leaves are those of their owners, whatever they have") {
  const Setup s = tiny(kLeaves, {{"embed", 4}}, true);
  WorkerOptions options = data_parallel(3, s.config.numerics.cells);
  options.check = {0.6, 5};
  options.shares = LeafShares({1, 5, 1});
  CHECK(same(train_on(s, options, 3), train_alone(s, 3)));
  // Each worker reads the rows of its own leaves, and no others without checks.
  RowShare share{.rows = 2, .workers = 3, .place = 1};
  share.shares = options.shares;
  CHECK(share.of(2 * kLeaves, 1) == std::vector<std::pair<int64_t, int64_t>>{{2, 12}});
  // With them those of each leaf, too, that it may have to compute: by the owners that unequal shares give.
  const std::vector<int64_t> counts{2, 1, 1, 1, 1, 1};
  const auto needed = [&](int64_t place, int64_t step, const LeafShares& shares) {
    const int64_t begin = std::accumulate(counts.begin(), counts.begin() + place, int64_t{0});
    std::set<int64_t> leaves;
    for (int64_t i = 0; i < counts[static_cast<size_t>(place)]; ++i) leaves.insert(begin + i);
    for (const CheckedLeaf& checked : checked_leaves(options.check, step, kLeaves, 6, shares))
      if (checked.may_run(place)) leaves.insert(checked.leaf);
    return leaves;
  };
  int others = 0;
  for (int64_t step = 1; step <= 20; ++step)
    for (int64_t place = 0; place < 6; ++place) {
      const RowShare own{
          .rows = 2, .workers = 6, .place = place, .check = options.check, .shares = LeafShares(counts)};
      std::set<int64_t> read;
      for (const auto& [first, last] : own.of(2 * kLeaves, step))
        for (int64_t row = first; row < last; row += 2) read.insert(row / 2);
      CHECK(read == needed(place, step, own.shares));
      others += read == needed(place, step, {}) ? 0 : 1;
    }
  CHECK(others > 0);  // the control: even shares give other owners, and so other checkers
}

TEST_CASE("shares: memory is planned for any of them, also where leaves are beside exchanges of slices") {
  const auto telling = compiled_engine(1), silent = interp::make_interpreter();
  REQUIRE(telling->info().tells_watch);
  REQUIRE_FALSE(silent->info().tells_watch);
  const Setup s = setup_of({{"data", -1}}, false);
  using Slices = std::vector<std::string>;
  // The plans of all workers for some shares.
  const auto planned = [&](const Slices& slices, runtime::Engine& engine, bool measured, bool checked) {
    WorkerOptions options = worker_options(s.config, 4, slices).value();
    options.measured_shares = measured;
    if (checked) options.check = {1, 1};
    std::set<std::vector<int64_t>> all;
    for (const std::vector<int64_t>& counts :
         std::vector<std::vector<int64_t>>{{2, 2, 2, 1}, {1, 1, 1, 4}, {1, 4, 1, 1}}) {
      options.shares = LeafShares(counts);
      std::vector<int64_t> gradients;
      for (const train::WorkerLoad& load :
           mesh_loads(s.programs, engine, "none", options, kLeaves).value().workers)
        gradients.push_back(load.gradients);
      all.insert(gradients);
    }
    return all;
  };
  for (const Slices& slices : std::vector<Slices>{{}, {"a", "b", "c", "d"}, {"a", "a", "b", "b"}}) {
    CHECK(planned(slices, *telling, true, false).size() == 1);
    CHECK(planned(slices, *telling, false, false).size() > 1);  // the control: shares that never change
  }
  // Without a watch sums of slices are made after the leaves, but beside those that are computed again.
  const Slices slices{"a", "a", "b", "b"};
  const auto again = planned(slices, *silent, true, true);
  CHECK(again.size() == 1);
  CHECK(again == planned(slices, *telling, true, true));
  CHECK(planned(slices, *silent, true, false) < again);
}

TEST_CASE("shares: controls that must fail: leaves or partial sums in another order") {
  const Setup s = tiny(kLeaves, {{"embed", 3}});
  const Trail alone = train_alone(s, 2);
  for (const char* fault : {"", "leaf_order", "ring_order"}) {
    WorkerOptions options = data_parallel(3, s.config.numerics.cells);
    options.shares = LeafShares({1, 2, 4});
    CHECK(same(train_on(s, options, 2, fault), alone) == (*fault == '\0'));
  }
}

// Leaves that count what OSTRO_SIM_SLOW says.
std::vector<int64_t> leaves_after(train::StepRunner& runner, const Setup& s, train::State& state, int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto done =
        runner.run(state, batch_of(kLeaves, i % 2),
                   optim::step_scalars(s.config.optimizer, state.step, s.config.trainer.num_train_steps));
    REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message()));
  }
  std::vector<int64_t> counts;
  for (const train::WorkerLoad& load : runner.loads(kLeaves)) counts.push_back(load.leaves);
  return counts;
}

TEST_CASE(
    "shares: workers of 4 : 2 : 1 come to shares of 4 : 2 : 1, and even ones stay with trainer.shares: "
    "even") {
  ::setenv("OSTRO_SIM_SLOW", "0:20ms,1:40ms,2:80ms", 1);
  const Setup s = setup_of({{"data", -1}}, false);
  const auto engine = compiled_engine();
  for (const bool measured : {true, false}) {
    WorkerOptions options = worker_options(s.config, 3).value();
    options.measured_shares = measured;
    auto runner = make_worker_runner(s.programs, *engine, "none", options).value();
    train::State state = train::initial_state(s.programs, *engine, 0).value();
    CHECK(leaves_after(*runner, s, state, 4) == std::vector<int64_t>{2, 2, 3});
    CHECK(leaves_after(*runner, s, state, 1) ==
          (measured ? std::vector<int64_t>{4, 2, 1} : std::vector<int64_t>{2, 2, 3}));
  }
  ::unsetenv("OSTRO_SIM_SLOW");
}

}  // namespace
}  // namespace ostro::fleet
