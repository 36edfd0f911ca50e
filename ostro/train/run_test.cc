// What a run says of its cost and its time.
#include "ostro/train/run.h"

#include <doctest/doctest.h>

#include "ostro/cpu/engine.h"
#include "ostro/io/faulty_file_system.h"
#include "ostro/io/memory_file_system.h"
#include "ostro/train/mixed_run_for_test.h"

namespace ostro::train {
namespace {

TEST_CASE("FLOPs a token are the model's: what is made again in the backward pass does not count") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const auto plan_with = [&](const std::string& policy) {
    io::MemoryFileSystem fs;
    write_mixed_files(fs);
    const auto run =
        Run::open(mixed_config({{"model.gradient_checkpointing", policy}}), {fs, **engine, 1, {}, {}, {}});
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    const Result<RunPlan> plan = (*run)->plan();
    REQUIRE_MESSAGE(plan.ok(), plan.error().message());
    return *plan;
  };
  const RunPlan all = plan_with("true"), none = plan_with("false"), keep = plan_with("everything");
  CHECK(all.leaf.flops > keep.leaf.flops);
  CHECK(all.flops_per_token == keep.flops_per_token);
  CHECK(none.flops_per_token == keep.flops_per_token);
}

TEST_CASE("a save by the clock is in its step's report") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem memory;
  write_mixed_files(memory);
  io::FaultyFileSystem fs(memory);
  Environment env{fs, **engine, 1, {}, {}, {}};
  env.clock = [&] { return std::chrono::seconds(fs.writes()); };  // a save writes
  const auto run = Run::open(mixed_config({{"trainer.checkpointer.save_interval", "1s"}}), env);
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  Watcher watcher;
  int64_t steps = 0;
  watcher.on_step = [&](const StepReport& r) {
    CAPTURE(r.step);
    CHECK(r.save_seconds >= 1);
    ++steps;
  };
  const auto outcome = (*run)->train(watcher);
  REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
  CHECK(steps == 7);
}

}  // namespace
}  // namespace ostro::train
