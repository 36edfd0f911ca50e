#include "ostro/lab/drive/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "ostro/base/sha256.h"
#include "ostro/config/options.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/audit.h"
#include "ostro/lab/drive/child.h"
#include "ostro/lab/journal/output.h"

namespace ostro::lab {
namespace {

class Driver {
 public:
  Driver(OpenLab lab, const RunRequest& request) : lab_(std::move(lab)), request_(request) {
    for (const Step& step : lab_.plan.steps) out_.steps.push_back({.step = &step});
    stages_.resize(out_.steps.size());
  }

  Result<LabState> all() {
    if (lab_.works) RETURN_IF_ERROR(keep_plan());
    begun_at_ = lab_.journal.head();
    for (const std::string& source : request_.pin) lab_.pins.forget(pin_name(lab_.plan, source));
    for (bool goes_on = true; goes_on;) {
      ASSIGN_OR_RETURN(goes_on, pass());
      if (!jobs_.empty()) {
        RETURN_IF_ERROR(wait());
        goes_on = true;
      }
    }
    if (lab_.works) RETURN_IF_ERROR(lab_.hashes.save());
    out_.journal_head = lab_.journal.head();
    return std::move(out_);
  }

 private:
  enum class Stage { kOpen, kRunning, kFinal };
  // A step that is done in children_[i], for job i.
  struct Job {
    size_t step;
    bool is_stopping = false;
  };

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
      if (stops() || static_cast<int>(jobs_.size()) == request_.jobs) break;
      StepState& state = out_.steps[i];
      bool is_ready = true;
      for (const auto& [parameter, input] : state.step->inputs) {
        if (out_.made.contains(input)) continue;
        is_ready = false;
        const StepState* of = out_.find(input);
        if (stages_[static_cast<size_t>(of - out_.steps.data())] != Stage::kFinal) continue;
        state.reason =
            fmt::format("needs {}, which {}", input, of->action == Action::kFail ? "failed" : "is not done");
        finish(i, {});
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
    Made made;
    if (const Status known = decide_step(lab_, out_.made, state, made); !known.ok()) {
      finish(i, known);
      return true;
    }
    for (const Job& job : jobs_)
      if (out_.steps[job.step].fingerprint == state.fingerprint) return false;
    if (state.step->kind->name == "source") {
      made.fingerprint = state.fingerprint;
      made.content = state.content;
      out_.made[state.step->name] = std::move(made);
    }
    if (!lab_.works) {
      finish(i, {});
      return true;
    }
    if (state.action == Action::kSkip) {
      const DoneEntry* last = lab_.journal.last_of(state.step->name);
      if (last == nullptr || last->fingerprint != state.fingerprint)
        RETURN_IF_ERROR(record_step(lab_, state));
      if (state.step->kind->name == "source" || !is_drawn(begun_at_, state.fingerprint, request_.audit)) {
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

  Status begin(size_t i) {
    StepState& state = out_.steps[i];
    const auto folder = state.action == Action::kAudit ? begin_audit(lab_, state) : begin_step(lab_, state);
    if (!folder.ok()) {
      finish(i, folder.error());
      return {};
    }
    if (request_.jobs == 1) {
      end(i, perform(lab_.work(*state.step, out_.made), *folder));
      return {};
    }
    const std::string logs = io::join_path(lab_.directory, "logs");
    RETURN_IF_ERROR(lab_.context.fs.make_dirs(logs));
    const int share = std::max(1, request_.threads / request_.jobs);
    auto child = Child::start(
        [&] {
          NoProgress progress;
          Services services = lab_.services;
          services.build.threads = share;
          Context context = {
              lab_.context.fs, lab_.context.models, lab_.context.engine,   lab_.context.engine_for_a_moment,
              progress,        lab_.context.stop,   lab_.context.engine_on};
          return perform({context, services, lab_.plan, *state.step, out_.made}, *folder);
        },
        io::join_path(logs, io::base_name(*folder) + ".txt"), share);
    if (!child.ok()) {
      finish(i, child.error());
      return {};
    }
    stages_[i] = Stage::kRunning;
    jobs_.push_back({i});
    children_.push_back(std::move(*child));
    return {};
  }

  // Waits until a step that is done beside others has ended, or a moment.
  Status wait() {
    constexpr int kMoment = 200;  // ms
    size_t ended = 0;
    const std::optional<Performed> performed = Child::wait_for_one(children_, kMoment, ended);
    if (stops())
      for (size_t k = 0; k < jobs_.size(); ++k)
        if (!std::exchange(jobs_[k].is_stopping, true) && !(performed && k == ended)) children_[k].stop();
    if (!performed) return {};
    const size_t step = jobs_[ended].step;
    jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(ended));
    std::vector<Child> others;
    for (size_t k = 0; k < children_.size(); ++k)
      if (k != ended) others.push_back(std::move(children_[k]));
    children_.swap(others);
    end(step, *performed);
    return {};
  }

  void end(size_t i, const Performed& performed) {
    StepState& state = out_.steps[i];
    if (performed.ok() && !*performed) out_.stopped = true;
    finish(i, state.action == Action::kAudit ? end_audit(lab_, out_.made, state, performed)
                                             : end_step(lab_, out_.made, state, performed));
  }

  // Makes a state final.
  void finish(size_t i, const Status& status) {
    StepState& state = out_.steps[i];
    stages_[i] = Stage::kFinal;
    if (!status.ok()) {
      state.action = Action::kFail;
      state.reason = status.error().message();
      out_.made.erase(state.step->name);
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
  std::vector<Job> jobs_;
  std::vector<Child> children_;
  LabState out_;
};

Result<LabState> drive(const Context& context, const Services& services, const Plan& plan,
                       const RunRequest& request, bool works) {
  const std::string directory = plan.directory();
  ASSIGN_OR_RETURN(Journal journal, Journal::open(context.fs, directory));
  ASSIGN_OR_RETURN(Pins pins, Pins::read(context.fs, io::join_path(plan.folder, kPinsFile)));
  FileHashes hashes(context.fs, io::join_path(directory, "hashes.json"), request.every_byte);
  return Driver({context, services, plan, works, directory, std::move(journal), std::move(pins),
                 std::move(hashes)},
                request)
      .all();
}

// Who works on the lab, for the message that another process gets.
std::string owner() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("process {} of {}", ::getpid(), host.data());
}

}  // namespace

Result<LabState> run_plan(const Context& context, const Services& services, const Plan& plan,
                          const RunRequest& request) {
  for (const std::string& source : request.pin) {
    const Step* step = plan.find(source);
    if (step != nullptr && step->kind->name == "source") continue;
    std::vector<std::string> sources;
    for (const Step& s : plan.steps)
      if (s.kind->name == "source") sources.push_back(s.name);
    return invalid_argument(fmt::format("--pin {}: is no source of the plan; the nearest is \"{}\"", source,
                                        config::nearest_name(source, sources)));
  }
  RETURN_IF_ERROR(context.fs.make_dirs(plan.directory()));
  const auto lock = context.fs.lock(io::join_path(plan.directory(), "lock"), owner());
  if (!lock.ok())
    return lock.error().with_context(
        "another process works on this lab: wait until it has ended, or stop it, and run this again");
  return drive(context, services, plan, request, true);
}

Result<LabState> look_at(const Context& context, const Plan& plan, bool every_byte) {
  RunRequest request;
  request.every_byte = every_byte;
  return drive(context, Services{}, plan, request, false);
}

}  // namespace ostro::lab
