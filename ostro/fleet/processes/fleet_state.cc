#include "ostro/fleet/processes/fleet_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/processes/cell_work.h"
#include "ostro/fleet/processes/leaf_sharing.h"
#include "ostro/io/files/path.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::fleet {
namespace {

constexpr std::chrono::seconds kPatienceOfLeader{3};

class FleetState final : public train::LiveState {
 public:
  FleetState(Crew& crew, const train::StateParts& parts)
      : crew_(crew),
        sharing_(crew),
        fs_(parts.fs),
        config_(parts.config),
        root_(io::join_path(train::run_directory(parts.config), checkpoint::kCheckpointsFolder)),
        held_out_(parts.held_out),
        vocab_(parts.vocab) {}

  int64_t step() const override { return step_; }

  Status take_over(int64_t step) override {
    step_ = step;
    return Status();
  }

  Result<train::StepResult> advance(const train::BatchArrays& batch,
                                    const std::vector<float>& scalars) override {
    train::StepResult result;
    int attempts = 0;
    const auto step_with_others = [&]() -> Status {
      RETURN_IF_ERROR(check_step(step_));
      // The others may have finished this step when a worker was lost.
      if (crew_.worker().step_number() > step_) {
        result = crew_.worker().last_result();
        if (!result.ok()) return lost("this worker does not know the result of its last step");
        RETURN_IF_ERROR(command({Command::Kind::kPrints}));
        return crew_.worker().add_fingerprints(crew_.group(), result);
      }
      // A step that fails each time must not keep a run from being saved.
      if (attempts++ > 0 && crew_.stop_asked()) return busy("the run is to stop, and its next step failed");
      Command step{Command::Kind::kStep, step_};
      OSTRO_CHECK(scalars.size() <= step.scalars.size(), "an optimizer with {} scalars", scalars.size());
      step.count = static_cast<int64_t>(scalars.size());
      std::copy(scalars.begin(), scalars.end(), step.scalars.begin());
      RETURN_IF_ERROR(sharing_.before_step(batch[0].shape().axes[0].size / crew_.plan().rows));
      const auto begin = std::chrono::steady_clock::now();
      RETURN_IF_ERROR(command(step));
      auto stepped = crew_.worker().step(crew_.group(), batch, scalars);
      if (const auto& found = crew_.worker().checks().disagreement) return differs(*found);
      ASSIGN_OR_RETURN(result, std::move(stepped));
      sharing_.after_step(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      return Status();
    };
    RETURN_IF_ERROR(together(true, step_with_others));
    if (result.ok()) ++step_;
    return result;
  }

  std::vector<train::Finding> take_findings() override {
    std::vector<train::Finding> out;
    for (Disagreement& found : crew_.take_disagreements()) out.push_back({found.step, std::move(found.text)});
    return out;
  }

  runtime::ExecutableInfo leaf_info() const override { return info(&Worker::leaf_program); }
  runtime::ExecutableInfo update_info() const override { return info(&Worker::apply_program); }

  int64_t processes() const override { return crew_.epoch().size; }
  bool is_shared() const override { return true; }
  bool goes_elsewhere(const checkpoint::AsyncSaver& saver) override {
    // Workers write a checkpoint in the background; those who do are to be there until it is done.
    crew_.hold(saver.running());
    return crew_.leaves_next();
  }

  Status begin(int64_t seed) override {
    step_ = 0;
    return together(false, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kInit}));
      RETURN_IF_ERROR(cells().begin(crew_.group(), seed));
      crew_.adopted(0);
      return Status();
    });
  }

  Result<train::CellsRead> restore(const std::string& path, int64_t step, bool prints) override {
    train::CellsRead read;
    RETURN_IF_ERROR(together(false, [&]() -> Status {
      Command c{Command::Kind::kRestore, step};
      c.prints = prints ? 1 : 0;
      RETURN_IF_ERROR(command(c));
      ASSIGN_OR_RETURN(read, cells().restore(crew_.group(), fs_, path, prints));
      if (read.unfit.empty()) crew_.adopted(step), step_ = step;
      return Status();
    }));
    return read;
  }

  Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) override {
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      if (crew_.worker().step_number() != info.step)
        return lost(fmt::format("the workers are after step {}, and step {} was to be saved",
                                crew_.worker().step_number(), info.step));
      RETURN_IF_ERROR(command({Command::Kind::kSave, info.step}));
      ASSIGN_OR_RETURN(CellSnapshot snapshot, cells().snapshot(crew_.group(), info));
      return start(std::move(snapshot), saver);
    }));
    saving_ = Saving{info.step, info.kind == checkpoint::Kind::kPermanent, crew_.epoch().number};
    return Status();
  }

  Result<std::optional<checkpoint::Saved>> finish_save(checkpoint::AsyncSaver& saver) override {
    writes_again_ = false;
    auto waited = saver.wait();
    if (!saving_) return waited;
    // A run that stops ends with this checkpoint, named or not.
    const bool needed = saving_->named || crew_.stop_asked();
    if (!waited.ok() && needed && crew_.ended(saving_->epoch)) {
      ASSIGN_OR_RETURN(const bool again, save_again(saver));
      if (again) {
        log_info(
            fmt::format("the checkpoint of step {} was not complete when a worker was lost; the others "
                        "write it again",
                        saving_->step));
        saving_->epoch = crew_.epoch().number;
        writes_again_ = true;
        return std::optional<checkpoint::Saved>();
      }
    }
    const Saving saving = *std::exchange(saving_, std::nullopt);
    if (waited.ok() || !crew_.ended(saving.epoch)) return waited;
    log_warning(fmt::format("a checkpoint is lost with a worker: {}", waited.error().message()));
    if (!needed) return std::optional<checkpoint::Saved>();
    // The chain cannot go on without the name of one that is due.
    crew_.restart();
    return waited.error();
  }

  bool writes_again() const override { return writes_again_; }

  Result<train::HeldOutLoss> evaluate() override {
    const ir::Program program = train::held_out_program(config_, vocab_);
    std::vector<train::BatchLoss> losses;
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kEvaluate}));
      ASSIGN_OR_RETURN(losses, cells().evaluate(crew_.group(), *held_out_, program));
      return Status();
    }));
    return held_out_->loss(losses);
  }

 private:
  // The save that was begun last, until it has been waited for.
  struct Saving {
    int64_t step = 0;
    bool named = false;  // the chain names it
    int64_t epoch = 0;   // in which it is written
  };

  // When a save has failed because a worker was lost: the workers that are left save what they still have of
  // that state. False: some cell of it is lost.
  Result<bool> save_again(checkpoint::AsyncSaver& saver) {
    const std::shared_ptr<const CellSnapshot> mine = unfinished_.snapshot;
    if (mine == nullptr) return false;
    bool complete = true;
    RETURN_IF_ERROR(together(true, [&]() -> Status {
      RETURN_IF_ERROR(command({Command::Kind::kSaveAgain, mine->info.step}));
      Result<CellSnapshot> snapshot = deal_again(crew_.group(), mine->info.step, mine.get());
      complete = snapshot.ok() || snapshot.error().code() != ErrorCode::kNotFound;
      if (!complete) return Status();
      RETURN_IF_ERROR(snapshot);
      return start(std::move(*snapshot), saver);
    }));
    return complete;
  }

  Status start(CellSnapshot snapshot, checkpoint::AsyncSaver& saver) {
    unfinished_.snapshot.reset();
    return saver.start(
        lead_save(crew_.shared_save(fs_, root_, snapshot.info.step), std::move(snapshot), &unfinished_));
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
    // A leader that leaves closes the run first (Run::train).
    if (crew_.formed() && crew_.switch_due() && !crew_.leaves_next()) {
      // A worker that does not receive this sees that the connections end.
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

  // The workers do not agree on a step. With a majority, or when the step can be done again, the next epoch
  // goes on from the state before it, or after it; a state of which no majority is right is made again.
  Status differs(const Disagreement& found) {
    const Error error = crew_.differs(found);
    if (found.state_lost && error.code() == ErrorCode::kIo) return lost(error.message());
    return error;
  }

  Status lost(const std::string& why) {
    crew_.restart();
    return io_error("the state of the run is lost: " + why);
  }

  Crew& crew_;
  LeafSharing sharing_;
  io::FileSystem& fs_;
  const train::TrainConfig config_;
  const std::string root_;  // of the checkpoints
  const std::optional<train::HeldOutText> held_out_;
  const int64_t vocab_;
  int64_t step_ = 0;
  std::unique_ptr<CellWork> cells_;
  int64_t cells_of_ = 0;       // an epoch
  UnfinishedSave unfinished_;  // outlives the saver's thread: see Run
  std::optional<Saving> saving_;
  bool writes_again_ = false;
};

}  // namespace

std::unique_ptr<train::LiveState> make_fleet_state(Crew& crew, const train::StateParts& parts) {
  return std::make_unique<FleetState>(crew, parts);
}

std::optional<CarriedState> carried_state(Crew& crew) {
  if (!crew.formed() || !crew.settled().has_state) return std::nullopt;
  return CarriedState{crew.worker().step_number(), crew.worker().last_result()};
}

}  // namespace ostro::fleet
