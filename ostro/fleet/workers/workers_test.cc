// Data-parallel workers give the bits of one worker, on the interpreter; and the exchange is seen to matter.
#include <cmath>

#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/workers/workers_for_test.h"
#include "ostro/numerics/tree.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::fleet {
namespace {

TEST_CASE("leaves are given out in contiguous ranges; subtrees cover each range once") {
  for (int64_t leaves = 1; leaves <= 20; ++leaves)
    for (int64_t workers = 1; workers <= 23; ++workers) {
      int64_t next = 0;
      for (int64_t rank = 0; rank < workers; ++rank) {
        const train::LeafRange range = train::leaf_range(leaves, workers, rank);
        CHECK(range.begin == (rank < leaves ? next : leaves));
        for (const train::Subtree& node : train::subtrees(leaves, range)) {
          CHECK(node.first == next);
          CHECK((node.count == 1 || train::siblings(leaves, {node.first, numerics::tree_split(node.count)},
                                                    {node.first + numerics::tree_split(node.count),
                                                     node.count - numerics::tree_split(node.count)})));
          next += node.count;
        }
        CHECK(next == range.end);
      }
      CHECK(next == leaves);
    }
  CHECK(train::subtrees(7, {1, 7}) == std::vector<train::Subtree>{{1, 1}, {2, 2}, {4, 3}});
  CHECK(train::subtrees(6, {0, 6}) == std::vector<train::Subtree>{{0, 6}});
  CHECK(train::siblings(8, {2, 1}, {3, 1}));
  CHECK_FALSE(train::siblings(8, {1, 1}, {2, 1}));
  CHECK_FALSE(train::siblings(8, {2, 2}, {4, 4}));
  CHECK_FALSE(train::siblings(7, {4, 2}, {6, 2}));
}

TEST_CASE("any number of workers gives the bits of one") {
  const Setup s = tiny(7, {{"embed", 4}}, true);
  const Trail alone = train_alone(s, 8);
  check_alive(alone);
  CHECK(alone.bytes == 0);
  for (int64_t workers : {1, 2, 3, 5, 9}) {
    const Trail t = train_workers(s, workers, 8);
    CHECK_MESSAGE(same(t, alone), workers, " workers");
    CHECK((t.bytes > 0) == (workers > 1));
  }
  CHECK_FALSE(same(train_alone(tiny(7, {{"embed", 4}}, true, 1), 8), alone));
}

TEST_CASE("the compiled engine: workers share its threads and give the interpreter's bits") {
  const Setup s = tiny(6, {{"embed", 4}});
  const Trail alone = train_alone(s, 3);
  for (const char* isa : {"", "generic"}) {
    cpu::CpuOptions options;
    options.isa = isa;
    options.threads = 2;
    options.generated_code = false;
    auto engine = cpu::make_cpu_engine(options);
    REQUIRE(engine.ok());
    for (int64_t workers : {2, 3}) {
      auto runner =
          make_worker_runner(s.programs, **engine, "none", data_parallel(workers, s.config.numerics.cells));
      REQUIRE_MESSAGE(runner.ok(), (runner.ok() ? "" : runner.error().message()));
      CHECK_MESSAGE(same(train(s, **runner, **engine, 3), alone), workers, " workers, isa ", isa);
    }
  }
}

TEST_CASE("slow: workers on generated code, with feature leaves and rematerialisation") {
  Setup s = tiny(7, {{"embed", 4}});
  s.config.numerics.leaves = {{"mlp", 2}, {"vocab", 3}};
  check_ok(s.config.resolve());
  s.programs = train::make_programs(
                   s.config, s.config.model_options().functions(kVocab, train::compute_dtype(s.config)))
                   .value();
  const Trail alone = train_alone(s, 3);
  auto engine = cpu::make_cpu_engine({}).value();
  for (int64_t workers : {2, 3, 5})
    for (const char* remat : {"none", "all"}) {
      auto runner =
          make_worker_runner(s.programs, *engine, remat, data_parallel(workers, s.config.numerics.cells))
              .value();
      CHECK(same(train(s, *runner, *engine, 3), alone));
    }
}

TEST_CASE("ownership by single indices, by two axes of cells, by cells that do not divide the axis") {
  for (const spmd::Cells& cells :
       std::vector<spmd::Cells>{{}, {{"embed", 5}, {"mlp", 3}}, {{"embed", 8}}, {{"vocab", 3}}}) {
    const Setup s = tiny(6, cells);
    const Trail alone = train_alone(s, 2);
    const std::string axis = cells.empty() ? "embed" : cells.back().first;
    for (int64_t workers : {2, 3}) CHECK(same(train_on(s, data_parallel(workers, cells, axis), 2), alone));
  }
}

TEST_CASE("a state from elsewhere is taken over, also in mid-run") {
  const Setup s = tiny(6, {{"embed", 4}});
  const auto engine = interp::make_interpreter();
  auto runner =
      make_worker_runner(s.programs, *engine, "none", data_parallel(3, s.config.numerics.cells)).value();
  const Trail first = train(s, *runner, *engine, 3), again = train(s, *runner, *engine, 3);
  CHECK(same(first, again));
  CHECK(same(first, train_alone(s, 3)));
}

TEST_CASE("a step that is not finite leaves the state as it was") {
  const Setup s = tiny(6, {{"embed", 4}});
  const auto engine = interp::make_interpreter();
  auto runner =
      make_worker_runner(s.programs, *engine, "none", data_parallel(2, s.config.numerics.cells)).value();
  train::State poisoned = train::initial_state(s.programs, *engine, 0).value();
  poisoned.params[0].mutable_as<float>()[0] = std::nanf("");
  train::State state = poisoned;
  auto r = runner->run(state, batch_of(6, 0), {0.01f, 1.0f, 1.0f});
  REQUIRE(r.ok());
  CHECK_FALSE(r->ok());
  CHECK(state.step == poisoned.step);
  check_ok(runner->collect(state, train::StepRunner::Collect::kAll));
  CHECK(same(state.params, poisoned.params));
  CHECK(same(state.optimizer, poisoned.optimizer));
}

TEST_CASE("controls that must fail: leaves in another order, partials added around a ring") {
  const Setup s = tiny(7, {{"embed", 3}});
  const Trail alone = train_alone(s, 2);
  CHECK_FALSE(same(train_workers(s, 3, 2, "leaf_order"), alone));
  const Trail ring = train_workers(s, 3, 2, "ring_order");
  CHECK_FALSE(same(ring, alone));
  // Only the order of the additions differs: the first step's losses are the same.
  CHECK(ring.steps[0].loss() == alone.steps[0].loss());
  CHECK(ring.steps[0].prints != alone.steps[0].prints);
}

}  // namespace
}  // namespace ostro::fleet
