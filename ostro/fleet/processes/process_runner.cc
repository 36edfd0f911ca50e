#include "ostro/fleet/processes/process_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include <optional>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/fleet/processes/cell_work.h"
#include "ostro/train/programs/programs.h"

namespace ostro::fleet {
namespace {

constexpr std::chrono::seconds kPatienceOfLeader{3};

class ProcessRunner final : public train::StepRunner, private train::SpreadState {
 public:
  explicit ProcessRunner(Crew& crew) : crew_(crew) {}

  Result<train::StepResult> run(train::State& state, const train::BatchArrays& batch,
                                const std::vector<float>& scalars) override {
    train::StepResult result;
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      RETURN_IF_ERROR(check_step(state.step));
      // The others may have finished this step when a worker was lost.
      if (crew_.worker().step_number() > state.step) {
        result = crew_.worker().last_result();
        if (!result.ok()) return lost("this worker does not know the result of its last step");
        RETURN_IF_ERROR(command({Command::Kind::kPrints}));
        return crew_.worker().add_fingerprints(crew_.group(), result);
      }
      Command step{Command::Kind::kStep, state.step};
      OSTRO_CHECK(scalars.size() <= step.scalars.size(), "an optimizer with {} scalars", scalars.size());
      step.count = static_cast<int64_t>(scalars.size());
      std::copy(scalars.begin(), scalars.end(), step.scalars.begin());
      RETURN_IF_ERROR(command(step));
      ASSIGN_OR_RETURN(result, crew_.worker().step(crew_.group(), batch, scalars));
      return Status();
    }));
    if (result.ok()) ++state.step;
    return result;
  }

  train::SpreadState* spread() override { return this; }

  runtime::ExecutableInfo leaf_info() const override { return info(&Worker::leaf_program); }
  runtime::ExecutableInfo update_info() const override { return info(&Worker::apply_program); }
  std::vector<train::WorkerLoad> loads(int64_t leaves) const override {
    return crew_.formed() ? std::vector{crew_.worker().load(leaves)} : std::vector<train::WorkerLoad>();
  }
  int64_t bytes_sent() const override { return crew_.formed() ? crew_.group().bytes_sent() : 0; }

 private:
  Status begin(int64_t seed) override {
    return together(false, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kInit}));
      RETURN_IF_ERROR(cells().begin(crew_.group(), seed));
      crew_.adopted(0);
      return Status();
    });
  }

  Result<train::CellsRead> restore(io::FileSystem& fs, const std::string& path, int64_t step,
                                   bool prints) override {
    train::CellsRead read;
    RETURN_IF_ERROR(together(false, [&]() -> Status {
      Command c{Command::Kind::kRestore, step};
      c.prints = prints ? 1 : 0;
      RETURN_IF_ERROR(command(c));
      ASSIGN_OR_RETURN(read, cells().restore(crew_.group(), fs, path, prints));
      if (read.unfit.empty()) crew_.adopted(step);
      return Status();
    }));
    return read;
  }

  Status save(io::FileSystem& fs, const std::string& root, const checkpoint::Info& info,
              checkpoint::AsyncSaver& saver) override {
    return together(true, [&]() -> Status {
      if (crew_.worker().step_number() != info.step)
        return lost(
            fmt::format("the workers are after step {}, "
                        "and step {} was to be saved",
                        crew_.worker().step_number(), info.step));
      RETURN_IF_ERROR(command({Command::Kind::kSave, info.step}));
      ASSIGN_OR_RETURN(CellSnapshot snapshot, cells().snapshot(crew_.group(), info));
      return start(fs, root, std::move(snapshot), saver);
    });
  }

  Result<bool> save_again(io::FileSystem& fs, const std::string& root,
                          checkpoint::AsyncSaver& saver) override {
    const std::shared_ptr<const CellSnapshot> mine = unfinished_.snapshot;
    if (mine == nullptr) return false;
    bool complete = true;
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kSaveAgain, mine->info.step}));
      Result<CellSnapshot> snapshot = deal_again(crew_.group(), mine->info.step, mine.get());
      complete = snapshot.ok() || snapshot.error().code() != ErrorCode::kNotFound;
      if (!complete) return Status();
      RETURN_IF_ERROR(snapshot);
      return start(fs, root, std::move(*snapshot), saver);
    }));
    return complete;
  }

  Status start(io::FileSystem& fs, const std::string& root, CellSnapshot snapshot,
               checkpoint::AsyncSaver& saver) {
    const EpochView& epoch = crew_.epoch();
    const SharedSave place{
        &fs,        root,      &crew_.membership().store(epoch.number), save_key(snapshot.info.step),
        epoch.rank, epoch.size};
    unfinished_.snapshot.reset();
    return saver.start(lead_save(place, std::move(snapshot), &unfinished_));
  }

  Result<std::vector<train::BatchLoss>> evaluate(const train::HeldOutText& text,
                                                 const ir::Program& program) override {
    std::vector<train::BatchLoss> losses;
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kEvaluate}));
      ASSIGN_OR_RETURN(losses, cells().evaluate(crew_.group(), text, program));
      return Status();
    }));
    return losses;
  }

  CellWork& cells() {
    if (cells_ == nullptr || cells_of_ != crew_.epoch().number) {
      cells_ = std::make_unique<CellWork>(crew_.plan(), crew_.worker(), train::cell_boxes(crew_.config()));
      cells_of_ = crew_.epoch().number;
    }
    return *cells_;
  }

  Status command(const Command& c) { return send_command(crew_.group(), c); }

  runtime::ExecutableInfo info(Result<runtime::Executable*> (Worker::*program)()) const {
    if (!crew_.formed()) return {};
    const auto made = (crew_.worker().*program)();
    return made.ok() ? (*made)->info() : runtime::ExecutableInfo();
  }

  // Does `work` with the other workers; again, as often as one of them is lost meanwhile. `state`: they must
  // have one.
  Status together(bool state, const std::function<Status()>& work) {
    while (true) {
      RETURN_IF_ERROR(come_together(state));
      const auto begin = std::chrono::steady_clock::now();
      const Status done = work();
      if (done.ok() || done.error().code() != ErrorCode::kIo || crew_.restarts()) return done;
      recount_time(TimeUse::kRecovery, std::chrono::steady_clock::now() - begin);
      log_warning(done.error().message());
      crew_.leave(done.error().message());
    }
  }

  Status come_together(bool state) {
    // Who leads and leaves closes the run first (Run::train).
    if (crew_.formed() && crew_.switch_due() && !crew_.leaves_next()) {
      // Whoever does not hear it sees that the connections end.
      (void)command({Command::Kind::kSwitch});
      crew_.leave("another epoch goes on");
    }
    if (!crew_.formed()) {
      const TimeScope scope(crew_.epoch().number == 0 ? first_use() : TimeUse::kRecovery);
      // A leader that is cut off from the others must not keep the run from them.
      const auto until = std::chrono::steady_clock::now() + kPatienceOfLeader;
      Result<EpochView> epoch = crew_.wait_epoch();
      while (!epoch.ok() && epoch.error().code() == ErrorCode::kBusy && !crew_.stopped()) {
        if (crew_.epoch().number > 0 && std::chrono::steady_clock::now() > until) {
          crew_.reopen();
          return io_error("no epoch has begun since the last one ended; the run is closed until one does");
        }
        epoch = crew_.wait_epoch();
      }
      RETURN_IF_ERROR(crew_.form());
    }
    if (!crew_.leads()) {
      crew_.reopen();
      return io_error("another worker leads from here");
    }
    if (!state || crew_.settled().has_state) return Status();
    return lost(crew_.settled().lost.empty() ? "no worker has a part of it" : crew_.settled().lost);
  }

  // The run is at a step; the workers must be there, or have just done the next one.
  Status check_step(int64_t step) {
    const int64_t ahead = crew_.worker().step_number() - step;
    if (ahead == 0 || ahead == 1) return Status();
    return lost(fmt::format("the workers are after step {}, the run after step {}",
                            crew_.worker().step_number(), step));
  }

  Status lost(const std::string& why) {
    crew_.restart();
    return io_error("the state of the run is lost: " + why);
  }

  Crew& crew_;
  std::unique_ptr<CellWork> cells_;
  int64_t cells_of_ = 0;  // an epoch
  UnfinishedSave unfinished_;
};

}  // namespace

Result<std::unique_ptr<train::StepRunner>> make_process_runner(Crew& crew) {
  return std::unique_ptr<train::StepRunner>(std::make_unique<ProcessRunner>(crew));
}

}  // namespace ostro::fleet
