#include "ostro/train/workers/process_runner.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/train/workers/collect_cells.h"

namespace ostro::train {
namespace {

class ProcessRunner final : public StepRunner {
 public:
  explicit ProcessRunner(Crew& crew) : crew_(crew) {}

  Result<StepResult> run(State& state, const BatchArrays& batch, const optim::AdamScalars& scalars) override {
    StepResult result;
    RETURN_IF_ERROR(together(state, [&]() -> Status {
      // The others may have finished this step when a worker was lost.
      if (crew_.worker().step_number() > state.step) {
        result = crew_.settled().last;
        RETURN_IF_ERROR(command({Command::Kind::kPrints}));
        ASSIGN_OR_RETURN(result.prints, crew_.worker().prints(crew_.group()));
        return Status();
      }
      RETURN_IF_ERROR(command({Command::Kind::kStep, state.step, scalars.lr, scalars.k1, scalars.k2}));
      ASSIGN_OR_RETURN(result, crew_.worker().step(crew_.group(), batch, scalars));
      return Status();
    }));
    state.params.clear(), state.first_moment.clear(), state.second_moment.clear();
    if (result.ok) ++state.step;
    return result;
  }

  Status collect(State& state, Collect what) override {
    if (!crew_.formed() && !state.params.empty() && !state.first_moment.empty()) return Status();
    const auto bring = [&](Command::Kind kind,
                           const std::vector<std::pair<std::vector<runtime::Buffer> Cells::*,
                                                       std::vector<runtime::Buffer>*>>& parts) {
      return together(state, [&]() -> Status {
        RETURN_IF_ERROR(command({kind}));
        for (const auto& [cells, whole] : parts)
          RETURN_IF_ERROR(collect_cells(crew_.plan(), crew_.group(), crew_.worker().own().*cells, *whole));
        return Status();
      });
    };
    if (state.params.empty())
      RETURN_IF_ERROR(bring(Command::Kind::kCollectParameters, {{&Cells::params, &state.params}}));
    if (what == Collect::kParameters || !state.first_moment.empty()) return Status();
    return bring(Command::Kind::kCollectMoments, {{&Cells::first_moment, &state.first_moment},
                                                  {&Cells::second_moment, &state.second_moment}});
  }

  runtime::ExecutableInfo leaf_info() const override { return info(&Worker::leaf_program); }
  runtime::ExecutableInfo update_info() const override { return info(&Worker::apply_program); }
  std::vector<WorkerLoad> loads(int64_t leaves) const override {
    std::vector<WorkerLoad> out;
    for (int64_t rank = 0; rank < crew_.plan().mesh().size(); ++rank)
      out.push_back(Worker(crew_.plan(), rank).load(leaves));
    return out;
  }
  int64_t bytes_sent() const override { return crew_.formed() ? crew_.group().bytes_sent() : 0; }

 private:
  Status command(const Command& c) { return send_command(crew_.group(), c); }

  runtime::ExecutableInfo info(Result<runtime::Executable*> (Worker::*program)()) const {
    if (!crew_.formed()) return {};
    const auto made = (crew_.worker().*program)();
    return made.ok() ? (*made)->info() : runtime::ExecutableInfo();
  }

  // Does `work` with the other workers; again, as often as one of them is lost meanwhile.
  Status together(State& state, const std::function<Status()>& work) {
    while (true) {
      RETURN_IF_ERROR(come_together(state));
      const Status done = work();
      if (done.ok() || done.error().code() != ErrorCode::kIo) return done;
      log_warning(fmt::format("step {}: {}", state.step + 1, done.error().message()));
      crew_.leave(done.error().message());
    }
  }

  Status come_together(State& state) {
    if (crew_.formed() && crew_.switch_due()) {
      // Whoever does not hear it sees that the connections end.
      (void)command({Command::Kind::kSwitch});
      crew_.leave("another epoch goes on");
    }
    const bool fresh = !crew_.settled().has_state;
    if (!crew_.formed()) {
      RETURN_IF_ERROR(crew_.form(fresh ? &state : nullptr));
    } else if (fresh) {
      RETURN_IF_ERROR(command({Command::Kind::kSettle}));
      RETURN_IF_ERROR(crew_.settle_whole(&state));
    }
    const Settled& settled = crew_.settled();
    const int64_t ahead = settled.has_state ? crew_.worker().step_number() - state.step : -1;
    if (ahead < 0 || ahead > 1) {
      crew_.restart();
      return io_error(settled.has_state ? fmt::format("the workers are at step {}, the run at step {}",
                                                      crew_.worker().step_number(), state.step)
                                        : "the state of the run is lost: " + settled.lost);
    }
    return Status();
  }

  Crew& crew_;
};

}  // namespace

Result<std::unique_ptr<StepRunner>> make_process_runner(Crew& crew) {
  return std::unique_ptr<StepRunner>(std::make_unique<ProcessRunner>(crew));
}

}  // namespace ostro::train
