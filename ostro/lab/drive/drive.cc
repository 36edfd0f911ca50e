#include "ostro/lab/drive/drive.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/experiment/journal/output.h"
#include "ostro/experiment/plan/halving.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/audit.h"
#include "ostro/lab/drive/jobs.h"
#include "ostro/lab/steps/halving.h"

namespace ostro::lab {
namespace {

class Driver {
 public:
  Driver(OpenLab lab, const RunRequest& request)
      : lab_(std::move(lab)), request_(request), jobs_(request.jobs, request.threads) {
    for (const Step& step : lab_.plan.steps) out_.steps.push_back({.step = &step});
    stages_.resize(out_.steps.size());
  }

  Result<LabState> all() {
    if (lab_.works) RETURN_IF_ERROR(keep_plan());
    if (request_.audit > 0) RETURN_IF_ERROR(lab_.journal.add_draw(request_.audit));
    begun_at_ = lab_.journal.head();
    for (const std::string& source : request_.pin) lab_.pins.forget(pin_name(lab_.plan, source));
    for (bool goes_on = true; goes_on;) {
      ASSIGN_OR_RETURN(goes_on, pass());
      if (!jobs_.steps().empty()) {
        wait();
        goes_on = true;
      }
    }
    // Without them files are read again the next time; why a step failed is more.
    if (lab_.works)
      if (const Status saved = lab_.hashes.save(); !saved.ok())
        log_warning(fmt::format("hashes of files are not kept: {}", saved.error().message()));
    return std::move(out_);
  }

 private:
  enum class Stage { kOpen, kRunning, kFinal };

  // The expanded plan is kept beside the journal, which has its hash.
  Status keep_plan() {
    const std::string text = canonical_plan(lab_.plan), hash = sha256_hex(text);
    if (lab_.journal.plan_hash() == hash) return {};
    const std::string folder = io::join_path(lab_.directory, "plans");
    RETURN_IF_ERROR(lab_.context.fs.make_dirs(folder));
    RETURN_IF_ERROR(io::write_file_atomically(lab_.context.fs, io::join_path(folder, hash + ".json"), text));
    return lab_.journal.add_plan(hash);
  }

  bool stops() {
    if (lab_.works && !out_.stopped) out_.stopped = lab_.context.stop();
    return out_.stopped;
  }

  // Handles steps in the plan's order as far as inputs and free places allow. Returns whether anything went
  // on. Failures of steps are states; errors are those of the lab's own files.
  Result<bool> pass() {
    bool went_on = false;
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (stages_[i] != Stage::kOpen) continue;
      if (stops() || jobs_.is_full()) break;
      StepState& state = out_.steps[i];
      bool is_ready = true;
      for (const auto& [parameter, input] : state.step->inputs) {
        if (out_.made.contains(input) || left_.contains(input)) continue;
        is_ready = false;
        const StepState* of = out_.find(input);
        if (stages_[static_cast<size_t>(of - out_.steps.data())] != Stage::kFinal) continue;
        state.reason =
            fmt::format("needs {}, which {}", input, of->action == Action::kFail ? "failed" : "is not done");
        finish(i, lab_.works ? Status() : ask_cost_of_waiting(state));
        went_on = true;
        break;
      }
      if (!is_ready) continue;
      ASSIGN_OR_RETURN(const bool handled, handle(i));
      went_on |= handled;
    }
    return went_on;
  }

  // Decides about a step whose inputs are there, and begins it. False: it must wait for another one.
  Result<bool> handle(size_t i) {
    StepState& state = out_.steps[i];
    auto why = left_out(lab_.context.fs, lab_.plan, out_.made, left_, *state.step);
    if (!why.ok() || !why->empty()) {
      if (why.ok()) state.action = Action::kLeft, state.reason = std::move(*why);
      finish(i, why.ok() ? Status() : why.error());
      return true;
    }
    const std::string refusal = lab_.gate.refusal(
        lab_.plan, *state.step, [&](const std::string& source) { return out_.made.at(source).content; });
    if (!refusal.empty()) {
      state.reason = refusal;
      finish(i, lab_.works ? Status(invalid_argument(refusal)) : ask_cost(state));
      return true;
    }
    Made made;
    if (const Status known = decide_step(lab_, out_.made, state, made); !known.ok()) {
      finish(i, known);
      return true;
    }
    for (const size_t other : jobs_.steps())
      if (out_.steps[other].fingerprint == state.fingerprint) return false;
    if (state.step->kind->name == "source") {
      made.fingerprint = state.fingerprint;
      made.content = state.content;
      out_.made[state.step->name] = std::move(made);
    }
    if (!lab_.works) {
      finish(i, state.action == Action::kSkip ? Status() : ask_cost(state));
      return true;
    }
    if (state.action == Action::kSkip) {
      const DoneEntry* last = lab_.journal.last_of(state.step->name);
      if (last == nullptr || last->fingerprint != state.fingerprint)
        RETURN_IF_ERROR(record_step(lab_, state));
      // The part that did what a rung has stopped is drawn itself.
      if (state.was_stopped || state.step->kind->name == "source" ||
          !is_drawn(begun_at_, state.fingerprint, request_.audit)) {
        finish(i, {});
        return true;
      }
      state.action = Action::kAudit;
      state.reason = "is done again, to compare";
    }
    if (request_.on_begin) request_.on_begin(state);
    RETURN_IF_ERROR(begin(i));
    return true;
  }

  Status ask_cost(StepState& state) {
    ASSIGN_OR_RETURN(state.cost, cost(lab_.work(*state.step, out_.made)));
    return {};
  }

  // Of a part of a halved training that waits for its rung, when all that its cost depends on is there.
  Status ask_cost_of_waiting(StepState& state) {
    if (!most_that_go_on(lab_.plan, *state.step)) return {};
    for (const auto& [parameter, input] : state.step->inputs)
      if (parameter != kBegun && parameter != kRung && !out_.made.contains(input)) return {};
    return ask_cost(state);
  }

  // Where the output of a step that is done is made.
  std::string folder_of(const StepState& state) const {
    return state.action == Action::kAudit ? audit_folder(lab_, state)
                                          : output_folder(lab_.directory, state.fingerprint);
  }

  Status begin(size_t i) {
    const std::string folder = folder_of(out_.steps[i]);
    const TaskFiles files(lab_.directory, folder);
    const Status begun =
        request_.elsewhere != nullptr ? begin_elsewhere(i, folder, files) : begin_here(i, folder, files);
    if (!begun.ok()) finish(i, begun);
    return {};
  }

  // Which step it is; begin_elsewhere() adds what doing it takes.
  StepTask task_of(const StepState& state, const std::string& folder) const {
    return {.attempt = {},
            .plan = lab_.plan.file,
            .sanity = lab_.plan.sanity,
            .step = state.step->name,
            .fingerprint = state.fingerprint,
            .folder = folder,
            .where = io::absolute_path(".")};
  }

  // Makes the folder ready in which a step begins or goes on; `again`: another attempt may have worked in it.
  // Where the journal has the step, what was there at first is damaged.
  Status ready(StepState state, const std::string& folder, bool again) {
    if (state.action == Action::kAudit) return begin_audit(lab_, state);
    if ((again || state.content.empty()) && resumes(*state.step->kind)) {
      ASSIGN_OR_RETURN(const bool begun, lab_.context.fs.exists(folder));
      if (begun) state.action = Action::kResume;
    }
    return begin_step(lab_, state);
  }

  Status begin_here(size_t i, const std::string& folder, const TaskFiles& files) {
    StepState& state = out_.steps[i];
    ASSIGN_OR_RETURN(const auto left, left_elsewhere(lab_.context.fs, files, task_of(state, folder)));
    if (left) {
      end(i, *left, true);
      return {};
    }
    RETURN_IF_ERROR(ready(state, folder, false));
    if (request_.jobs == 1) {
      end(i, perform(lab_.work(*state.step, out_.made), folder), false);
      return {};
    }
    RETURN_IF_ERROR(
        jobs_.start(i, lab_.work(*state.step, out_.made), folder, io::join_path(lab_.directory, "logs")));
    stages_[i] = Stage::kRunning;
    return {};
  }

  Status begin_elsewhere(size_t i, const std::string& folder, const TaskFiles& files) {
    const StepState& state = out_.steps[i];
    RETURN_IF_ERROR(lab_.context.fs.make_dirs(io::parent_path(files.log)));
    const auto waits = [&] {
      StepTask task = task_of(state, folder);
      task.seeds = lab_.gate.seeds();
      task.made = out_.made;
      task.argv = request_.argv;
      task.version = lab_.services.version;
      return do_elsewhere(
          lab_.context.fs, *request_.elsewhere, files, std::move(task), resumes(*state.step->kind),
          [&](bool again) { return ready(state, folder, again); }, lab_.context.stop);
    };
    RETURN_IF_ERROR(jobs_.start_waiting(i, waits, files.log));
    stages_[i] = Stage::kRunning;
    return {};
  }

  // Waits until a step that is done beside others has ended, or a moment.
  void wait() {
    if (auto ended = jobs_.wait()) end(ended->first, ended->second, request_.elsewhere != nullptr);
    if (stops()) jobs_.stop();
  }

  void end(size_t i, const Performed& performed, bool elsewhere) {
    StepState& state = out_.steps[i];
    if (performed.ok() && !*performed) out_.stopped = true;
    const TaskFiles files(lab_.directory, folder_of(state));
    if (state.action == Action::kAudit) {
      finish(i, end_audit(lab_, out_.made, state, performed, request_.by));
    } else {
      const Status sandboxed =
          elsewhere ? sandboxed_there(lab_.context.fs, files) : is_sandboxed(*state.step->kind);
      finish(i, end_step(lab_, out_.made, state, performed, sandboxed));
    }
    if (!elsewhere) return;
    if (state.action == Action::kSkip)
      (void)lab_.context.fs.remove_all(files.directory);
    else if (state.action == Action::kFail)
      (void)discard_answer(lab_.context.fs, files);
  }

  // Makes a state final.
  void finish(size_t i, const Status& status) {
    StepState& state = out_.steps[i];
    stages_[i] = Stage::kFinal;
    if (!status.ok()) {
      state.action = Action::kFail;
      state.reason = status.error().message();
      out_.made.erase(state.step->name);
    } else if (state.action == Action::kLeft) {
      left_.insert(state.step->name);
    } else if (state.action == Action::kSkip && state.step->kind->name != "source") {
      out_.made[state.step->name] =
          Made{state.fingerprint, state.content, output_folder(lab_.directory, state.fingerprint), {}, {}};
    }
    if (request_.on_end) request_.on_end(state);
  }

  OpenLab lab_;
  const RunRequest& request_;
  std::string begun_at_;       // the journal's head then
  std::vector<Stage> stages_;  // of out_.steps
  Jobs jobs_;
  std::set<std::string> left_;  // names of steps that are left out
  LabState out_;
};

}  // namespace

Result<LabState> drive(OpenLab lab, const RunRequest& request) {
  return Driver(std::move(lab), request).all();
}

}  // namespace ostro::lab
