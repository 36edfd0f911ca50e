// begun, go, verified: a small run that is amended after four steps, for tests.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::audit::amend_for_test {

inline constexpr int64_t kAmendedAt = 4;
inline const train::Settings kQuiet = {{"trainer.steps_per_eval", "0"}, {"trainer.tracker", "[]"}};
// Weights, batch sizes, length, rate and what the programs hold; stages before step 4 are not those of the
// run.
inline const train::Settings kAmended = {
    {"data.train_weights", "[[0, {web: 1, code: 0}], [2, {web: 0.5, code: 0.5}], [6, {web: 1, code: 0}]]"},
    {"trainer.train_batch_size", "[[0, 6], [5, 2]]"},
    {"trainer.num_train_steps", "8"},
    {"optimizer.learning_rate", "0.002"},
    {"optimizer.beta1", "0.8"},
    {"numerics.cells", "{embed: 4}"},
    {"trainer.steps_per_eval", "0"},
    {"trainer.tracker", "[]"}};

inline std::unique_ptr<runtime::Engine> plain_engine() {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  return std::move(engine).value();
}

// Trains to the end, or until so many steps are done; the error when it cannot.
inline Result<run::RunOutcome> go(io::FileSystem& fs, runtime::Engine& engine,
                                  const train::TrainConfig& config, bool amend, int64_t until = 1000,
                                  int64_t workers = 1) {
  const run::Run* running = nullptr;
  ASSIGN_OR_RETURN(
      const auto run,
      run::Run::open(config, {fs, engine, workers, [&] { return running->step() >= until; }, {}, {}}, amend));
  running = run.get();
  return run->train({});
}

inline run::RunOutcome must_go(io::FileSystem& fs, runtime::Engine& engine, const train::TrainConfig& config,
                               bool amend, int64_t until = 1000, int64_t workers = 1) {
  const auto outcome = go(fs, engine, config, amend, until, workers);
  REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
  return *outcome;
}

inline chain::Chain chain_of(io::FileSystem& fs) {
  auto chain = chain::read_chain(fs, "runs/run/chain.jsonl");
  REQUIRE_MESSAGE(chain.ok(), chain.error().message());
  return *chain;
}

inline std::vector<chain::StepEntry> steps_of(const chain::Chain& chain) {
  std::vector<chain::StepEntry> steps;
  for (const chain::ChainLink& link : chain.links)
    if (const auto* step = std::get_if<chain::StepEntry>(&link.entry)) steps.push_back(*step);
  return steps;
}

// A run of four steps.
inline std::unique_ptr<io::MemoryFileSystem> begun(runtime::Engine& engine) {
  auto fs = std::make_unique<io::MemoryFileSystem>();
  train::write_mixed_files(*fs);
  check_ok(fs->sync_tree(""));
  must_go(*fs, engine, train::mixed_config(kQuiet), false, kAmendedAt);
  return fs;
}

inline std::string verified(io::FileSystem& fs, runtime::Engine& engine, int64_t from = 0,
                            int64_t workers = 1) {
  VerifyOptions options;
  options.from_step = from;
  options.workers = workers;
  const auto report = verify_run(fs, engine, "runs/run", options, models::builtin_models());
  if (!report.ok()) return report.error().message();
  return report->equal ? "equal" : fmt::format("step {} differs: {}", report->different_step, report->what);
}

}  // namespace ostro::audit::amend_for_test
