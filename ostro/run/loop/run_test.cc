// What a run says of its cost and its time.
#include "ostro/run/loop/run.h"

#include <doctest/doctest.h>

#include <atomic>

#include "ostro/chain/record.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/train/options/config.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::run {
namespace {

TEST_CASE("FLOPs a token are the model's: what is made again in the backward pass does not count") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const auto plan_with = [&](const std::string& policy) {
    io::MemoryFileSystem fs;
    train::write_mixed_files(fs);
    const auto run = Run::open(train::mixed_config({{"model.gradient_checkpointing", policy}}),
                               {fs, **engine, 1, {}, {}, {}});
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

// Counts how often the chain was synced, which a save does before it hands anything over.
class CountsSyncs final : public io::ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  int64_t syncs() const { return syncs_; }

 private:
  class File final : public io::WritableFile {
   public:
    File(std::unique_ptr<io::WritableFile> file, std::atomic<int64_t>& syncs)
        : file_(std::move(file)), syncs_(syncs) {}
    Status append(std::span<const std::byte> bytes) override { return file_->append(bytes); }
    Status sync() override {
      ++syncs_;
      return file_->sync();
    }
    Status close() override { return file_->close(); }

   private:
    std::unique_ptr<io::WritableFile> file_;
    std::atomic<int64_t>& syncs_;
  };

  Status before(Operation, const std::string&) override { return {}; }
  std::unique_ptr<io::WritableFile> writing(std::unique_ptr<io::WritableFile> file,
                                            const std::string& path) override {
    if (!path.ends_with("chain.jsonl")) return file;
    return std::make_unique<File>(std::move(file), syncs_);
  }

  std::atomic<int64_t> syncs_ = 0;
};

// Another process has the lock, and ends, which it says in run.json, before this one gets it.
class EndsAtLock final : public io::ForwardingFileSystem {
 public:
  EndsAtLock(io::FileSystem& base, std::string directory)
      : ForwardingFileSystem(base), base_(base), path_(std::move(directory) + "/" + chain::kRecordFile) {}

 private:
  Status before(Operation operation, const std::string&) override {
    if (operation != Operation::kLock) return {};
    chain::RunRecord record = chain::read_record(base_, path_).value();
    chain::end_session(record, "interrupted", 7);
    return chain::write_record(base_, path_, record);
  }

  io::FileSystem& base_;
  const std::string path_;
};

TEST_CASE("what a session writes down while its lock is waited for stays in the record") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem memory;
  train::write_mixed_files(memory);
  const train::TrainConfig config = train::mixed_config({});
  const std::string directory = train::run_directory(config), path = directory + "/" + chain::kRecordFile;
  check_ok(memory.make_dirs(directory));
  chain::RunRecord record;
  record.sessions.push_back(chain::begin_session({"ostro"}, 0));
  check_ok(chain::write_record(memory, path, record));
  EndsAtLock fs(memory, directory);
  const auto run = Run::open(config, {fs, **engine, 1, {}, {}, {}});
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  record = chain::read_record(memory, path).value();
  REQUIRE(record.sessions.size() == 2);
  CHECK(record.sessions[0].outcome == "interrupted");
  CHECK(record.sessions[0].to_step == 7);
  CHECK(record.sessions[1].outcome == "running");
}

TEST_CASE("a run that ends at a kept step goes on with the chain of a run that did not end there") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  const train::TrainConfig config =
      train::mixed_config({{"trainer.num_train_steps", "4"}, {"trainer.checkpointer.keep", "[{every: 2}]"}});
  const auto train = [&](io::FileSystem& fs, std::optional<int64_t> until) {
    Environment env{fs, **engine, 1, {}, {}, {}};
    env.until = until;
    const auto run = Run::open(config, env);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    const Result<RunOutcome> outcome = (*run)->train({});
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    return *outcome;
  };
  const std::string path = train::run_directory(config) + "/chain.jsonl";
  io::MemoryFileSystem whole, fs;
  train::write_mixed_files(whole);
  train::write_mixed_files(fs);
  CHECK(train(whole, std::nullopt).finished);
  const std::string chain = whole.read_file(path).value();
  const RunOutcome first = train(fs, 2);
  CHECK(!first.finished);
  CHECK(first.steps == 2);
  const std::string begun = fs.read_file(path).value();
  CHECK(chain.starts_with(begun));
  CHECK(begun.find("\"kind\":\"checkpoint\"") != std::string::npos);  // its last line names the state
  CHECK(chain::read_record(fs, train::run_directory(config) + "/" + chain::kRecordFile)
            .value()
            .sessions[0]
            .outcome == "ended as asked");
  // Asked again, it does no step; without that it goes on.
  const RunOutcome again = train(fs, 2);
  CHECK(again.steps == 2);
  CHECK(again.hash == first.hash);
  CHECK(fs.read_file(path).value() == begun);
  CHECK(train(fs, std::nullopt).finished);
  CHECK(fs.read_file(path).value() == chain);
}

TEST_CASE("a save by the clock is in its step's report") {
  auto engine = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(engine.ok());
  io::MemoryFileSystem memory;
  train::write_mixed_files(memory);
  CountsSyncs fs(memory);
  int64_t steps = 0, asked = 0;
  Environment env{fs, **engine, 1, {}, {}, {}};
  env.stop = [&] { return ++asked < 0; };  // asked once a step, before its save
  env.clock = [&] { return std::chrono::seconds(fs.syncs() + asked); };
  const auto run = Run::open(train::mixed_config({{"trainer.checkpointer.save_interval", "1s"}}), env);
  REQUIRE_MESSAGE(run.ok(), run.error().message());
  Watcher watcher;
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
}  // namespace ostro::run
