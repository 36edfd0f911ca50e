// A second kind of memory: an engine whose buffers the host cannot address trains with the chain of the
// engine on the host, alone and with simulated workers, with evaluations, saves and resumes.
#include "tests/engine/far_engine.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/run/loop/selftest.h"
#include "ostro/train/options/mixed_run_for_test.h"
#include "tests/engine/far_memory.h"

namespace ostro::test {
namespace {

std::unique_ptr<runtime::Engine> near_engine() {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  return std::move(*engine);
}

// configs/nano_test.yaml on texts of this test, with fewer steps.
train::TrainConfig nano(const train::Settings& more) {
  train::Settings settings = {{"data.train_urls", "[web/*.txt, code/*.txt]"},
                              {"data.validation_fraction", "0.2"},
                              {"trainer.num_train_steps", "8"},
                              {"trainer.steps_per_eval", "3"},
                              {"trainer.checkpointer.keep", "[{every: 4}]"}};
  settings.insert(settings.end(), more.begin(), more.end());
  auto config = train::load_train_config(OSTRO_SOURCE_DIR "/configs/nano_test.yaml", settings);
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  return *config;
}

struct Trained {
  std::string hash;                  // of the run
  std::vector<std::string> entries;  // of steps and checkpoints
  std::vector<double> held_out;      // losses, in order
};

// Sessions of at most `session` steps each: all but the first resume from a checkpoint.
// `slices`: the name of each worker's slice; empty: one.
Trained train(runtime::Engine& engine, const train::TrainConfig& config, int64_t workers, int64_t session,
              const std::vector<std::string>& slices = {}) {
  io::MemoryFileSystem fs;
  train::write_mixed_files(fs);
  Trained out;
  while (out.hash.empty()) {
    int64_t steps = 0;
    run::Environment environment{fs, engine, workers, [&] { return ++steps >= session; }, {}, {}};
    environment.slices = slices;
    auto run = run::Run::open(config, environment);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    run::Watcher watcher;
    watcher.on_eval = [&](const run::EvalReport& r) { out.held_out.push_back(r.loss); };
    const auto outcome = (*run)->train(watcher);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    if (outcome->finished) out.hash = outcome->hash;
  }
  const auto chain = chain::read_chain(fs, train::run_directory(config) + "/" + chain::kChainFile);
  REQUIRE(chain.ok());
  for (size_t i = 1; i < chain->links.size(); ++i)
    out.entries.push_back(chain::entry_json(chain->links[i].entry).value());
  return out;
}

TEST_CASE("nano trains in a memory that the host cannot address, with the same chain") {
  const auto near = near_engine();
  const Trained expected = train(*near, nano({}), 1, 100);
  CHECK(expected.entries.size() >= 10);  // eight steps and two checkpoints
  CHECK(expected.held_out.size() >= 2);
  const int64_t blocks_before = far_memory().blocks();
  {
    FarEngine far(near_engine());
    const auto same = [&](const char* what, int64_t workers, int64_t session) {
      CAPTURE(what);
      const Trained got = train(far, nano({}), workers, session);
      CHECK(got.hash == expected.hash);
      CHECK(got.entries == expected.entries);
      if (session > 8) CHECK(got.held_out == expected.held_out);
    };
    same("one worker", 1, 100);
    same("one worker, interrupted and resumed", 1, 3);
    same("three workers", 3, 100);
    same("four workers, interrupted and resumed", 4, 5);
  }
  CHECK(far_memory().blocks() == blocks_before);
}

TEST_CASE("four workers on other meshes, without copies of their cells, with an exchange in every leaf") {
  const auto near = near_engine();
  const Trained expected = train(*near, nano({}), 1, 100);
  for (const char* mesh : {"{exchange: layer}", "{exchange: layer, state_replicas: 0}",
                           "{axes: {replica: 2, data: 2}}", "{axes: {data: 2, model: 2}}"}) {
    CAPTURE(std::string(mesh));
    FarEngine far(near_engine());
    const Trained got = train(far, nano({{"trainer.mesh", mesh}}), 4, 5);
    CHECK(got.hash == expected.hash);
    CHECK(got.entries == expected.entries);
  }
}

TEST_CASE("workers in two slices, with both schedules, in a memory that the host cannot address") {
  const auto near = near_engine();
  std::set<std::string> first_steps;  // without the configuration, which differs anyway
  for (const char* groups : {"0", "2"}) {
    const Trained expected = train(*near, nano({{"numerics.slice_partials", groups}}), 1, 100);
    first_steps.insert(expected.entries.at(0));
    for (const char* mesh : {"{}", "{axes: {replica: 2, data: 2}, exchange: layer}"}) {
      CAPTURE(std::string(mesh));
      FarEngine far(near_engine());
      const auto config = nano({{"trainer.mesh", mesh}, {"numerics.slice_partials", groups}});
      const Trained got = train(far, config, 4, 5, {"a", "a", "b", "b"});
      CHECK(got.hash == expected.hash);
      CHECK(got.entries == expected.entries);
    }
  }
  CHECK(first_steps.size() == 2);
}

TEST_CASE("the self-test's hashes, from a memory that the host cannot address") {
  FarEngine far(near_engine());
  CHECK(run::selftest_hashes(far, 1).value() == run::known_selftest_hashes());
  CHECK(run::selftest_hashes(far, 2).value() == run::known_selftest_hashes());
}

// A read waits for the device. So the host reads nothing between the first and the last leaf of a step.
TEST_CASE("nothing is read on the host inside the leaf loop") {
  FarEngine far(near_engine());
  train(far, nano({}), 1, 100);
  const std::vector<FarRun> runs = far.runs();
  const auto in_loop = [](const FarRun& run) { return run.program == "leaf" || run.program == "add"; };
  int64_t leaves = 0;
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!in_loop(runs[i]) || !in_loop(runs[i - 1])) continue;
    CHECK(runs[i].reads == runs[i - 1].reads);
    leaves += runs[i].program == "leaf" ? 1 : 0;
  }
  CHECK(leaves == 8 * 5);  // six leaves a step, the first of which follows something else
}

TEST_CASE("control: a direct access to the bytes of a result ends the process") {
  FarEngine far(near_engine());
  ir::Program program;
  program.name = "same";
  program.param_names = {"x"};
  program.body.results = {program.body.add_param(ir::scalar(ir::DType::f32))};
  auto executable = far.compile(program, {});
  REQUIRE(executable.ok());
  const auto results = (*executable)->run({runtime::Buffer::scalar(ir::DType::f32, 3.0f)});
  REQUIRE(results.ok());
  CHECK((*results)[0].scalar<float>().value() == 3.0f);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(2);
    (void)(*results)[0].as<float>();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
}

}  // namespace
}  // namespace ostro::test
