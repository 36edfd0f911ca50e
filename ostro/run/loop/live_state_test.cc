// A third home of a run's state: one thread that has it for itself, as a device has its memory. The run does
// not know of it, and gets the bits that it gets elsewhere.
#include "ostro/train/step/live_state.h"

#include <doctest/doctest.h>

#include <functional>
#include <future>
#include <map>
#include <thread>
#include <type_traits>

#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/options/mixed_run_for_test.h"

namespace ostro::run {
namespace {

using Calls = std::map<std::string, int>;

class ThreadState final : public train::LiveState {
 public:
  ThreadState(std::unique_ptr<train::LiveState> inner, Calls& calls)
      : inner_(std::move(inner)), calls_(calls) {}

  int64_t step() const override { return inner_->step(); }
  Status begin(int64_t seed) override {
    return away("begin", [&] { return inner_->begin(seed); });
  }
  Result<train::CellsRead> restore(const std::string& path, int64_t step, bool prints) override {
    return away("restore", [&] { return inner_->restore(path, step, prints); });
  }
  Status take_over(int64_t step) override {
    return away("take_over", [&] { return inner_->take_over(step); });
  }
  Result<train::StepResult> advance(const train::BatchArrays& batch,
                                    const std::vector<float>& scalars) override {
    return away("advance", [&] { return inner_->advance(batch, scalars); });
  }
  Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) override {
    return away("save", [&] { return inner_->save(info, saver); });
  }
  Result<train::HeldOutLoss> evaluate() override {
    return away("evaluate", [&] { return inner_->evaluate(); });
  }
  runtime::ExecutableInfo leaf_info() const override { return inner_->leaf_info(); }
  runtime::ExecutableInfo update_info() const override { return inner_->update_info(); }

 private:
  template <typename F>
  std::invoke_result_t<F> away(const std::string& what, F f) {
    ++calls_[what];
    std::packaged_task<std::invoke_result_t<F>()> task(f);
    auto result = task.get_future();
    std::thread(std::move(task)).join();
    return result.get();
  }

  std::unique_ptr<train::LiveState> inner_;
  Calls& calls_;
};

struct Machine {
  Machine() : engine(cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false}).value()) {
    train::write_mixed_files(fs);
  }

  // Trains to the step after `until`, or to the end; the head of the chain then. Without `calls`: at home.
  std::string train(int64_t until, Calls* calls) {
    int64_t done = 0;
    Environment env{fs, *engine, 1, [&] { return done >= until; }, {}, {}};
    if (calls != nullptr)
      env.make_state = [&,
                        calls](const train::StateParts& parts) -> Result<std::unique_ptr<train::LiveState>> {
        ASSIGN_OR_RETURN(auto runner, train::make_step_runner(parts.programs, parts.engine, "none"));
        ASSIGN_OR_RETURN(auto inner, train::make_local_state(parts, std::move(runner)));
        return std::unique_ptr<train::LiveState>(std::make_unique<ThreadState>(std::move(inner), *calls));
      };
    const auto run = Run::open(train::mixed_config({{"trainer.steps_per_eval", "3"}}), env);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    Watcher watcher;
    watcher.on_step = [&](const StepReport& r) { done = r.step; };
    watcher.on_eval = [&](const EvalReport& r) { losses[r.step] = r.loss; };
    done = (*run)->step();
    const auto outcome = (*run)->train(watcher);
    REQUIRE_MESSAGE(outcome.ok(), outcome.error().message());
    return outcome->hash;
  }

  io::MemoryFileSystem fs;
  std::unique_ptr<runtime::Engine> engine;
  std::map<int64_t, double> losses;
};

// The bytes of a file below `directory` that is no JSON.
std::string* some_array(io::MemoryFileSystem& fs, const std::string& directory) {
  const std::vector<io::DirEntry> entries = fs.list(directory).value();
  for (const io::DirEntry& entry : entries) {
    const std::string path = directory + "/" + entry.name;
    std::string* found = entry.is_directory        ? some_array(fs, path)
                         : path.ends_with(".json") ? nullptr
                                                   : fs.content(path);
    if (found != nullptr && !found->empty()) return found;
  }
  return nullptr;
}

TEST_CASE("a run takes any home for its state: begun, stopped, resumed and evaluated, it has the same hash") {
  Machine home, elsewhere;
  Calls calls;
  const std::string hash = home.train(7, nullptr);
  elsewhere.train(3, &calls);
  CHECK(calls == Calls{{"begin", 1}, {"advance", 4}, {"save", 2}, {"evaluate", 1}});
  CHECK(elsewhere.train(7, &calls) == hash);
  CHECK(calls["restore"] == 1);
  CHECK(calls["advance"] == 7);
  CHECK(elsewhere.losses == home.losses);
}

TEST_CASE("from one home to another: what one has saved, the other goes on with") {
  Machine home, both;
  Calls calls;
  const std::string hash = home.train(7, nullptr);
  both.train(2, nullptr);
  both.train(4, &calls);
  CHECK(both.train(7, nullptr) == hash);
  CHECK(calls["restore"] == 1);
}

TEST_CASE("a damaged checkpoint is passed over, and the steps behind the one before are done again") {
  Machine home, damaged;
  Calls calls;
  const std::string hash = home.train(7, nullptr);
  damaged.train(3, nullptr);
  std::string* array = some_array(damaged.fs, "runs/run/checkpoints/" + checkpoint::step_directory(4));
  REQUIRE(array != nullptr);
  (*array)[array->size() / 2] = static_cast<char>((*array)[array->size() / 2] ^ 1);
  CHECK(damaged.train(7, &calls) == hash);
  CHECK(calls["restore"] == 2);
  CHECK(calls["advance"] == 5);
}

// A state that several processes share, whose second step ends with an error that was found by comparing.
class EndingState final : public train::LiveState {
 public:
  EndingState(std::unique_ptr<train::LiveState> inner, ErrorCode code)
      : inner_(std::move(inner)), code_(code) {}
  int64_t step() const override { return inner_->step(); }
  Status begin(int64_t seed) override { return inner_->begin(seed); }
  Result<train::CellsRead> restore(const std::string& path, int64_t step, bool prints) override {
    return inner_->restore(path, step, prints);
  }
  Status take_over(int64_t step) override { return inner_->take_over(step); }
  Result<train::StepResult> advance(const train::BatchArrays& batch,
                                    const std::vector<float>& scalars) override {
    ended_ = inner_->step() == 1;
    if (ended_) return Error(code_, "three times");
    return inner_->advance(batch, scalars);
  }
  std::vector<train::Finding> take_findings() override {
    if (!ended_) return {};
    return {{2, "worker 1 differs"}};
  }
  Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) override {
    return inner_->save(info, saver);
  }
  Result<train::HeldOutLoss> evaluate() override { return inner_->evaluate(); }
  runtime::ExecutableInfo leaf_info() const override { return inner_->leaf_info(); }
  runtime::ExecutableInfo update_info() const override { return inner_->update_info(); }
  bool is_shared() const override { return true; }

 private:
  std::unique_ptr<train::LiveState> inner_;
  const ErrorCode code_;
  bool ended_ = false;
};

TEST_CASE("run.json has what was found, also when the run ends because of it") {
  for (const ErrorCode code : {ErrorCode::kInternal, ErrorCode::kIo}) {
    Machine machine;
    Environment env{machine.fs, *machine.engine, 1, [] { return false; }, {}, {}};
    env.make_state = [&](const train::StateParts& parts) -> Result<std::unique_ptr<train::LiveState>> {
      ASSIGN_OR_RETURN(auto runner, train::make_step_runner(parts.programs, parts.engine, "none"));
      ASSIGN_OR_RETURN(auto inner, train::make_local_state(parts, std::move(runner)));
      return std::unique_ptr<train::LiveState>(std::make_unique<EndingState>(std::move(inner), code));
    };
    const auto run = Run::open(train::mixed_config({{"trainer.steps_per_eval", "3"}}), env);
    REQUIRE_MESSAGE(run.ok(), run.error().message());
    CHECK((*run)->train(Watcher()).error().code() == code);
    const chain::RunRecord record =
        chain::read_record(machine.fs, "runs/run/" + std::string(chain::kRecordFile)).value();
    REQUIRE(record.findings.size() == 1);
    CHECK(record.findings[0].step == 2);
    CHECK(record.findings[0].text == "worker 1 differs");
    // Of a loss, another process goes on with the session's run.
    const std::string wanted = code == ErrorCode::kInternal ? "failed: three times" : "running";
    CHECK(record.sessions.back().outcome == wanted);
  }
}

}  // namespace
}  // namespace ostro::run
