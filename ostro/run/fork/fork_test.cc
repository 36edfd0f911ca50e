// Forks whose parent is a mixture, or trains on pairs; over processes that are killed:
// tests/fault/fork_test.py.
#include "ostro/run/fork/fork.h"

#include <doctest/doctest.h>

#include "ostro/audit/beginning.h"
#include "ostro/audit/record/fork.h"
#include "ostro/audit/verify.h"
#include "ostro/chain/chain.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::run {
namespace {

using train::Settings;

struct ForkWorld {
  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;

  ForkWorld() {
    auto made = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
    REQUIRE(made.ok());
    engine = std::move(*made);
    train::write_mixed_files(fs);
  }

  chain::Chain train(const train::TrainConfig& config, int64_t workers = 1) {
    const auto run = Run::open(config, {fs, *engine, workers, {}, {}, {}});
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    const auto outcome = (*run)->train({});
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    return chain_of(train::run_directory(config));
  }

  chain::Chain chain_of(const std::string& directory) {
    auto chain = chain::read_chain(fs, directory + "/chain.jsonl");
    REQUIRE_MESSAGE(chain.ok(), chain.error().message());
    return std::move(*chain);
  }

  Result<Forked> fork(int64_t step, const Settings& changes) {
    const ForkRequest request{"runs/run", step, "forks/one"};
    ASSIGN_OR_RETURN(const train::TrainConfig config,
                     config_of_parent(fs, request, changes, models::builtin_models()));
    return fork_run(fs, request, config, {});
  }

  // What a fork is checked for without a replay, and with one.
  void check_equal(const std::string& directory) {
    const auto beginning =
        audit::check_beginning(fs, directory, chain_of(directory), "", models::builtin_models());
    REQUIRE_MESSAGE(beginning.ok(), beginning.error().message());
    for (const audit::Finding& finding : beginning->findings) FAIL_CHECK(finding.text);
    CHECK(beginning->text.find("names its state") != std::string::npos);
    const auto report = audit::verify_run(fs, *engine, directory, {}, models::builtin_models());
    REQUIRE_MESSAGE(report.ok(), report.error().message());
    CHECK_MESSAGE(report->equal, report->what);
    CHECK(report->start_step == 4);
  }
};

TEST_CASE("a fork with its parent's options does the parent's steps, on any number of workers") {
  ForkWorld world;
  const chain::Chain parent = world.train(train::mixed_config({}));
  const auto forked = world.fork(4, {});
  REQUIRE_MESSAGE(forked.ok(), forked.error().message());
  CHECK(!forked->was_there);
  const chain::Chain fork = world.train(forked->config, 2);
  CHECK(fork.genesis().step() == 4);
  for (int64_t step = 5; step <= 7; ++step) {
    REQUIRE(fork.find_step(step) != nullptr);
    CHECK(fork.find_step(step)->entry == parent.find_step(step)->entry);
  }
  CHECK(*fork.find_checkpoint(7) == *parent.find_checkpoint(7));
  CHECK(fork.head() != parent.head());
  world.check_equal("forks/one");
  const auto again = world.fork(4, {});
  REQUIRE_MESSAGE(again.ok(), again.error().message());
  CHECK(again->was_there);
}

TEST_CASE("a fork may mix the same data otherwise, or take other data; earlier steps stay as they were") {
  ForkWorld world;
  world.train(train::mixed_config({}));
  SUBCASE("other shares") {
    const auto forked =
        world.fork(4, {{"data.train_weights", "{web: 1, code: 0}"}, {"trainer.train_batch_size", "6"}});
    REQUIRE_MESSAGE(forked.ok(), forked.error().message());
    const auto& weights = forked->config.data.train_weights.stages;
    REQUIRE(weights.size() == 2);
    CHECK(weights[0].value.at("web") == 0.75);
    CHECK(weights[1].step == 4);
    CHECK(forked->config.trainer.train_batch_size.at(0) == 4);
    CHECK(forked->config.trainer.train_batch_size.at(4) == 6);
    world.train(forked->config);
    world.check_equal("forks/one");
  }
  SUBCASE("other components, seed and order") {
    const auto forked =
        world.fork(4, {{"data.components", "{prose: {train_urls: [web], validation_fraction: 0.3}}"},
                       {"data.train_weights", "{prose: 1}"},
                       {"data.cache_dir", "prose"},
                       {"data.shuffle", "true"},
                       {"trainer.seed", "5"}});
    REQUIRE_MESSAGE(forked.ok(), forked.error().message());
    CHECK(forked->config.data.train_weights.stages.size() == 1);
    world.train(forked->config);
    world.check_equal("forks/one");
  }
}

TEST_CASE("a fork on pairs compares with what its parent's first weights give") {
  ForkWorld world;
  const chain::Chain parent = world.train(train::mixed_config(train::kPairRun));
  const auto forked = world.fork(4, {{"optimizer.learning_rate", "0.001"}});
  REQUIRE_MESSAGE(forked.ok(), forked.error().message());
  const chain::Chain fork = world.train(forked->config);
  CHECK(fork.genesis().reference == parent.genesis().reference);
  CHECK(fork.find_step(5) != nullptr);
  world.check_equal("forks/one");
  check_ok(world.fs.remove("forks/one/reference.safetensors"));
  const auto run = Run::open(forked->config, {world.fs, *world.engine, 1, {}, {}, {}});
  REQUIRE(!run.ok());
  CHECK_MESSAGE(run.error().message().find("copy the file from its run directory") != std::string::npos,
                run.error().message());
}

TEST_CASE("what a state depends on cannot change at a fork, nor can the first state be another") {
  ForkWorld world;
  world.train(train::mixed_config({}));
  const auto says = [&](int64_t step, const Settings& changes, const char* words) {
    const auto forked = world.fork(step, changes);
    REQUIRE(!forked.ok());
    CHECK_MESSAGE(forked.error().message().find(words) != std::string::npos, forked.error().message());
    CHECK(!world.fs.exists("forks/one/chain.jsonl").value());
  };
  says(4, {{"model.num_layers", "2"}}, "model.num_layers is");
  says(4, {{"trainer.freeze", "[\"*embedding*\"]"}}, "trainer.freeze is");
  says(4, {{"trainer.num_train_steps", "4"}}, "use 5 or more");
  says(5, {}, "of steps 4 and 6");
  says(0, {}, "the nearest are those of step 2");
  world.fs.content("runs/run/checkpoints/step-00000004/model/norm/weight/c.0")->front() ^= 1;
  says(4, {}, "step-00000004");
}

}  // namespace
}  // namespace ostro::run
