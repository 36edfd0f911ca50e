#include "ostro/lab/places/do_task.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "ostro/base/failpoint.h"
#include "ostro/base/sha256.h"
#include "ostro/lab/steps/halving.h"

namespace ostro::lab {
namespace {

// Who asks holds the lock for moments only.
Result<std::unique_ptr<io::FileLock>> lock_soon(io::FileSystem& fs, const TaskFiles& files) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kPause{100};
  for (int n = 1;; ++n) {
    auto lock = lock_task(fs, files);
    if (lock.ok() || lock.error().code() != ErrorCode::kBusy || n == kTries) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

// The step itself. What it stands on must be what the process that asks has seen.
Performed do_step(const Context& context, const Services& services, const StepTask& task, Status& sandboxed) {
  if (services.version != task.version)
    return invalid_argument(
        fmt::format("step {}: this machine has version {} of ostro, and the command that asked for it has "
                    "{}; install the same one, and run the lab again",
                    task.step, services.version, task.version));
  ASSIGN_OR_RETURN(Plan plan, read_plan(context.fs, task.plan));
  plan.sanity = task.sanity;
  const Step* step = plan.find(task.step);
  if (step == nullptr)
    return invalid_argument(
        fmt::format("{}: has no step {} any more; run the lab again", task.plan, task.step));
  for (const auto& [parameter, input] : step->inputs)
    if (!task.made.contains(input) && !is_of_family(*step, parameter))
      return invalid_argument(
          fmt::format("{}: step {} needs {}, which it did not when this was asked; run the "
                      "lab again",
                      task.plan, task.step, input));
  const Work work = {context, services, plan, *step, task.made, task.seeds};
  ASSIGN_OR_RETURN(const std::string recipe, lab::recipe(work));
  if (const std::string fingerprint = sha256_hex(recipe); fingerprint != task.fingerprint)
    return invalid_argument(fmt::format(
        "step {} has the fingerprint {} here, and had {} when it was asked for: the plan or a file of it was "
        "changed meanwhile, or is another one here. Run the lab again",
        task.step, fingerprint.substr(0, 12), task.fingerprint.substr(0, 12)));
  sandboxed = is_sandboxed(*step->kind);
  return perform(work, task.folder);
}

}  // namespace

bool StopFile::is_there() {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kPause = 1'000;  // ms
  const int64_t now =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
  int64_t last = looked_;
  if (!there_ && now - last >= kPause && looked_.compare_exchange_strong(last, now)) {
    const auto found = fs_.exists(path_);
    if (found.ok() && *found) there_ = true;
  }
  return there_;
}

Status do_task(const Context& context, const Services& services, const TaskFiles& files,
               const StepTask& task) {
  io::FileSystem& fs = context.fs;
  ASSIGN_OR_RETURN(const auto lock, lock_soon(fs, files));
  ASSIGN_OR_RETURN(const std::optional<StepTask> now, read_task(fs, files));
  if (!now || now->attempt != task.attempt)
    return busy(fmt::format("{}: is another attempt by now, so this one ends", files.task));
  if (read_answer(fs, files, task.attempt))
    return busy(fmt::format("{}: this attempt has its answer already", files.answer));
  Status sandboxed;
  TaskAnswer answer{.attempt = task.attempt,
                    .performed = context.stop() ? Performed(std::optional<std::string>())
                                                : do_step(context, services, task, sandboxed)};
  if (!sandboxed.ok()) answer.unsandboxed = sandboxed.error().message();
  failpoint("lab_answer");
  return write_answer(fs, files, answer);
}

}  // namespace ostro::lab
