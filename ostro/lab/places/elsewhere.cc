#include "ostro/lab/places/elsewhere.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "ostro/base/log.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

// Attempts that ended without an answer although the cluster did not take their place away; and those that
// lost it.
constexpr int kMostLost = 4, kMostTaken = 200;
constexpr std::chrono::milliseconds kLook{200}, kFirstRest{250}, kMostRest{30'000};

std::string placed(const StepTask& task, const std::string& path) {
  return io::absolute_path(io::join_path(task.where, path));
}

// However the paths were typed, and wherever.
bool is_same(const StepTask& a, const StepTask& b) {
  return placed(a, a.plan) == placed(b, b.plan) && a.sanity == b.sanity && a.step == b.step &&
         a.fingerprint == b.fingerprint && placed(a, a.folder) == placed(b, b.folder);
}

// Waits until no process does the step; nothing when `stop` says so. `waited`: there was one.
Result<std::unique_ptr<io::FileLock>> lock_when_free(io::FileSystem& fs, const TaskFiles& files,
                                                     const std::function<bool()>& stop, bool& waited) {
  for (bool told = false;; told = waited = true) {
    auto lock = lock_task(fs, files);
    if (lock.ok() || lock.error().code() != ErrorCode::kBusy) return lock;
    if (!told) log_info(fmt::format("waits for what does this step already: {}", lock.error().message()));
    if (stop()) return std::unique_ptr<io::FileLock>();
    std::this_thread::sleep_for(kLook);
  }
}

// What an earlier attempt at the same task gave, if its output is there. Failures are tried again.
Result<std::optional<TaskAnswer>> earlier_answer(io::FileSystem& fs, const TaskFiles& files,
                                                 const StepTask& task) {
  ASSIGN_OR_RETURN(const std::optional<StepTask> before, read_task(fs, files));
  if (!before || !is_same(*before, task)) return std::optional<TaskAnswer>();
  std::optional<TaskAnswer> answer = read_answer(fs, files, before->attempt);
  if (!answer || !answer->performed.ok() || !*answer->performed) return std::optional<TaskAnswer>();
  ASSIGN_OR_RETURN(const bool there, fs.exists(placed(task, task.folder)));
  if (!there) answer.reset();
  return answer;
}

// All but the lock, which the caller holds. A process that begins later finds no task.
Status remove_files(io::FileSystem& fs, const TaskFiles& files) {
  RETURN_IF_ERROR(fs.remove_all(files.task));
  ASSIGN_OR_RETURN(const std::vector<io::DirEntry> entries, fs.list(files.directory));
  for (const io::DirEntry& entry : entries)
    if (const std::string path = io::join_path(files.directory, entry.name); path != files.lock)
      RETURN_IF_ERROR(fs.remove_all(path));
  return {};
}

void rest(int times, const std::function<bool()>& stop) {
  constexpr int kMostDoublings = 6;
  const auto until =
      std::chrono::steady_clock::now() +
      (times == 0 ? kLook : std::min(kMostRest, kFirstRest * (1 << std::min(times, kMostDoublings))));
  while (!stop() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
}

}  // namespace

Performed do_elsewhere(io::FileSystem& fs, const Cluster& cluster, const TaskFiles& files, StepTask task,
                       bool saves, const std::function<Status(bool)>& begin,
                       const std::function<bool()>& stop) {
  RETURN_IF_ERROR(fs.make_dirs(files.directory));
  ASSIGN_OR_RETURN(const std::optional<StepTask> before, read_task(fs, files));
  bool goes_on = false;
  if (before && is_same(*before, task)) {
    ASSIGN_OR_RETURN(goes_on, cluster.has(files));
  } else if (before) {
    RETURN_IF_ERROR(cluster.cancel_waiting(files));
  }
  if (goes_on) {
    task.attempt = before->attempt;
    RETURN_IF_ERROR(fs.remove_all(files.stop));
    log_info("goes on with what an earlier `ostro lab run` has begun");
  }
  bool again = goes_on;
  for (int lost = 0, taken = 0;; goes_on = false) {
    if (!goes_on) {
      ASSIGN_OR_RETURN(const auto lock, lock_when_free(fs, files, stop, again));
      if (lock == nullptr) return std::optional<std::string>();
      ASSIGN_OR_RETURN(const std::optional<TaskAnswer> answer, earlier_answer(fs, files, task));
      if (answer) return answer->performed;
      if (stop()) return std::optional<std::string>();
      RETURN_IF_ERROR(fs.remove_all(files.answer));
      RETURN_IF_ERROR(fs.remove_all(files.stop));
      task.attempt = new_attempt();
      RETURN_IF_ERROR(write_task(fs, files, task));
      RETURN_IF_ERROR(begin(again));
      again = true;
    }
    const auto end = cluster.attempt(files, saves, stop);
    const std::optional<TaskAnswer> answer = read_answer(fs, files, task.attempt);
    const bool was_stopped = answer && answer->performed.ok() && !*answer->performed;
    if (answer && !was_stopped) return answer->performed;
    if (stop()) return std::optional<std::string>();
    if (!end.ok()) return end.error();
    if (end->how == AttemptEnd::How::kCancelled)
      return io_error(fmt::format("{}; the same command does the step again", end->words));
    // A step that cannot save, and was asked to, has nothing of it.
    const bool is_lost = end->how == AttemptEnd::How::kEnded && !(was_stopped && saves);
    int& count = is_lost ? lost : taken;
    if (++count == (is_lost ? kMostLost : kMostTaken))
      return io_error(fmt::format(
          "{} times the process of the step {}; the last time: {}. The processes must see {} under "
          "this path",
          count, is_lost ? "ended without an answer" : "lost its place", end->words, files.directory));
    log_info(fmt::format("{}; the step is begun or gone on with again", end->words));
    rest(count - 1, stop);
  }
}

Status discard_answer(io::FileSystem& fs, const TaskFiles& files) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(files.answer));
  if (!there) return {};
  RETURN_IF_ERROR(fs.remove_all(files.task));  // without it the answer is of no attempt
  return fs.remove_all(files.answer);
}

Result<std::optional<Performed>> left_elsewhere(io::FileSystem& fs, const TaskFiles& files,
                                                const StepTask& task) {
  ASSIGN_OR_RETURN(const bool there, fs.exists(files.task));
  if (!there) return std::optional<Performed>();
  const auto lock = lock_task(fs, files);
  if (!lock.ok() && lock.error().code() == ErrorCode::kBusy)
    return lock.error().with_context(
        "an earlier `ostro lab run`, which was killed, has begun this step elsewhere, and it is being done: "
        "run this with the --place of that one, which goes on with it, or wait until it has ended");
  if (!lock.ok()) return lock.error();
  ASSIGN_OR_RETURN(const std::optional<TaskAnswer> answer, earlier_answer(fs, files, task));
  if (answer) return std::optional(answer->performed);
  RETURN_IF_ERROR(remove_files(fs, files));
  return std::optional<Performed>();
}

}  // namespace ostro::lab
