#include "ostro/lab/places/slurm_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "ostro/base/log.h"
#include "ostro/base/run_program.h"
#include "ostro/base/sha256.h"
#include "ostro/base/text_parts.h"
#include "ostro/cluster/slurm/batch_script.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/cluster/slurm/queue.h"
#include "ostro/cluster/slurm/sbatch_words.h"
#include "ostro/cluster/wire/worker_variables.h"
#include "ostro/io/files/path.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace ostro::lab {
namespace {

using Clock = std::chrono::steady_clock;
using cluster::is_alive;
using cluster::SlurmFate;
using cluster::SlurmJob;

// Seconds before a job's limit of time at which its step is to save.
constexpr int kGrace = 120;
constexpr std::chrono::milliseconds kLongest{1'000}, kFirstLook{1'000}, kLastLook{20'000};
// How long the queue may not answer; a job may not be listed, after sbatch has told its number; a job may
// take to end that was cancelled; and an answer may take from one machine to another, when the job has ended.
constexpr std::chrono::minutes kNoQueue{15};
constexpr std::chrono::seconds kUnlisted{60}, kCancelTime{60}, kAnswerTime{5};

std::string job_text(const SlurmJob& job) {
  return fmt::format("job {} of Slurm{}: {}", job.id, job.nodes.empty() ? "" : " on " + job.nodes, job.state);
}

// The last lines of what a job wrote, in one line.
std::string last_words(io::FileSystem& fs, const std::string& file) {
  constexpr size_t kMost = 300;
  const auto text = fs.read_file(file);
  if (!text.ok() || text->empty()) return "";
  std::string out = text->substr(text->size() - std::min(kMost, text->size()));
  std::replace(out.begin(), out.end(), '\n', ' ');
  return fmt::format(" ({}has: {})", file + " ", out.substr(0, out.find_last_not_of(' ') + 1));
}

class SlurmCluster final : public Cluster {
 public:
  SlurmCluster(io::FileSystem& fs, SlurmOptions options, std::string program, std::string folder)
      : fs_(fs), options_(std::move(options)), program_(std::move(program)), folder_(std::move(folder)) {}

  Result<bool> has(const TaskFiles& files) const override {
    ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, listed(queue(files)));
    return std::any_of(jobs.begin(), jobs.end(), is_alive);
  }

  Status cancel_waiting(const TaskFiles& files) const override {
    const cluster::SlurmQueue queue = this->queue(files);
    ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, queue.jobs());
    for (const SlurmJob& job : jobs)
      if (cluster::fate_of(job.state) == SlurmFate::kWaits)
        log_info(cancelled(files, queue, job.id).words + ", since another plan or output has asked for it");
    return {};
  }

  Result<AttemptEnd> attempt(const TaskFiles& files, bool saves,
                             const std::function<bool()>& stop) const override {
    const cluster::SlurmQueue queue = this->queue(files);
    ASSIGN_OR_RETURN(const std::vector<SlurmJob> jobs, listed(queue));
    const auto there = std::find_if(jobs.begin(), jobs.end(), is_alive);
    std::string id = there == jobs.end() ? "" : there->id;
    if (id.empty()) {
      RETURN_IF_ERROR(write_scripts(files));
      ASSIGN_OR_RETURN(id, submit(files, queue, stop));
      log_info(fmt::format("is job {} of Slurm", id));
    }
    auto end = wait(files, queue, id, saves, stop);
    if (end.ok()) (void)fs_.remove_all(files.environment);  // no job needs it any more
    return end;
  }

  std::string name(const TaskFiles& files) const {
    constexpr size_t kDigits = 16;
    return "ostro-lab-" + sha256_hex(files.directory).substr(0, kDigits);
  }

 private:
  // A signal to the group of this process ends squeue, too. So a failure is asked again.
  static Result<std::vector<SlurmJob>> listed(const cluster::SlurmQueue& queue) {
    auto jobs = queue.jobs();
    if (jobs.ok()) return jobs;
    std::this_thread::sleep_for(kFirstLook);
    return queue.jobs();
  }
  cluster::SlurmQueue queue(const TaskFiles& files) const {
    return {name(files), cluster::hidden_from_slurm(environ)};
  }
  static std::string batch_file(const TaskFiles& files) { return io::join_path(files.directory, "job.sh"); }
  static std::string output_file(const TaskFiles& files) {
    return io::join_path(files.directory, "slurm.txt");
  }

  Status write_scripts(const TaskFiles& files) const {
    RETURN_IF_ERROR(cluster::check_slurm_directory(files.directory));
    std::string batch = "#!/bin/sh\n";
    for (const std::string& option :
         {fmt::format("--job-name={}", name(files)), std::string("--nodes=1"), std::string("--ntasks=1"),
          fmt::format("--cpus-per-task={}", options_.cpus),
          "--output=" + shell_word(cluster::with_percents_doubled(output_file(files))),
          std::string("--open-mode=append"), std::string("--no-requeue"),
          fmt::format("--signal=TERM@{}", kGrace), options_.sbatch})
      if (!option.empty()) batch += fmt::format("#SBATCH {}\n", option);
    const std::string step = io::join_path(files.directory, "step.sh");
    batch += fmt::format("exec srun --cpus-per-task={} sh {}\n", options_.cpus, shell_word(step));
    const std::string script = fmt::format(
        "#!/bin/sh\n"
        "cd {} || exit 1\n"
        "while IFS= read -r line && [ -n \"$line\" ]; do export \"$line\"; done < {} || exit 1\n"
        "rm -f {}\n"
        "export OSTRO_THREADS={}\n"
        "exec {} lab step {} </dev/null\n",
        shell_word(folder_), shell_word(files.environment), shell_word(files.environment), options_.cpus,
        shell_word(program_), shell_word(files.task));
    RETURN_IF_ERROR(cluster::write_private_file(files.environment, cluster::worker_variables(environ)));
    RETURN_IF_ERROR(cluster::write_private_file(step, script));
    return cluster::write_private_file(batch_file(files), batch);
  }

  // A Ctrl-C ends sbatch, too, maybe when Slurm has taken the job.
  Result<std::string> submit(const TaskFiles& files, const cluster::SlurmQueue& queue,
                             const std::function<bool()>& stop) const {
    auto submitted = queue.submit(batch_file(files));
    if (submitted.ok()) return submitted;
    if (stop()) std::this_thread::sleep_for(kFirstLook);
    const auto jobs = queue.jobs();
    if (!jobs.ok()) return submitted;
    const auto there = std::find_if(jobs->begin(), jobs->end(), is_alive);
    return there == jobs->end() ? std::move(submitted) : there->id;
  }

  // What became of a step that was stopped is known from the end of its job alone.
  bool is_answered(const TaskFiles& files) const {
    const auto there = fs_.exists(files.answer);
    if (!there.ok() || !*there) return false;
    const auto task = read_task(fs_, files);
    if (!task.ok() || !*task) return false;
    const auto answer = read_answer(fs_, files, (*task)->attempt);
    return answer && (!answer->performed.ok() || *answer->performed);
  }

  // Sleeps for a while, but not when the answer is there. Returns whether it is. `wakes` says when to end
  // earlier.
  bool sleep(const TaskFiles& files, std::chrono::milliseconds pause,
             const std::function<bool()>& wakes) const {
    const auto until = Clock::now() + pause;
    while (true) {
      if (is_answered(files)) return true;
      if (Clock::now() >= until || wakes()) return false;
      std::this_thread::sleep_for(std::min(kLongest, pause / 5));
    }
  }

  Result<AttemptEnd> wait(const TaskFiles& files, const cluster::SlurmQueue& queue, const std::string& id,
                          bool saves, const std::function<bool()>& stop) const {
    using How = AttemptEnd::How;
    const auto begin = Clock::now();
    auto answered = begin;                     // the queue
    std::optional<Clock::time_point> stopped;  // when `stop` said so
    bool was_listed = false, told = false;
    for (std::chrono::milliseconds pause = kFirstLook;; pause = std::min(kLastLook, pause * 3 / 2)) {
      const auto jobs = queue.jobs();
      if (jobs.ok()) answered = Clock::now();
      if (!stopped && stop()) stopped = Clock::now();
      // A job that was told to save is waited for as long as the queue answers.
      if (stopped && Clock::now() - (told ? std::max(answered, *stopped) : *stopped) > kCancelTime)
        return AttemptEnd{How::kCancelled,
                          fmt::format("job {} is no longer waited for, and may be at work", id)};
      if (!jobs.ok()) {
        if (Clock::now() - answered > kNoQueue) return jobs.error();
      } else {
        const auto job =
            std::find_if(jobs->begin(), jobs->end(), [&](const SlurmJob& j) { return j.id == id; });
        const bool listed = job != jobs->end();
        was_listed = was_listed || listed;
        if (stopped && listed && is_alive(*job) && !told) {
          told = true;
          const bool runs = cluster::fate_of(job->state) == SlurmFate::kRuns;
          if (!saves || !runs) return cancelled(files, queue, id);
          RETURN_IF_ERROR(cluster::write_private_file(files.stop, ""));
        }
        if (listed && !is_alive(*job)) return ended(files, *job, saves);
        if (!listed && was_listed)
          return AttemptEnd{How::kTaken, fmt::format("job {} is no longer in Slurm's queue", id)};
        if (!listed && Clock::now() - begin > kUnlisted) {
          (void)queue.cancel({id});
          return AttemptEnd{How::kTaken, fmt::format("Slurm's queue has never listed job {}", id)};
        }
      }
      if (sleep(files, pause, [&] { return !stopped && stop(); }))
        return AttemptEnd{How::kEnded, fmt::format("job {} has answered", id)};
    }
  }

  AttemptEnd cancelled(const TaskFiles& files, const cluster::SlurmQueue& queue,
                       const std::string& id) const {
    const auto until = Clock::now() + kCancelTime;
    for (bool asked = false; Clock::now() < until;) {
      if (!asked) asked = queue.cancel({id}).ok();
      const auto jobs = queue.jobs();
      if (jobs.ok() && std::none_of(jobs->begin(), jobs->end(),
                                    [&](const SlurmJob& j) { return j.id == id && is_alive(j); }))
        break;
      if (sleep(files, kFirstLook, [] { return false; })) break;
    }
    return AttemptEnd{AttemptEnd::How::kCancelled, fmt::format("job {} was cancelled", id)};
  }

  // The next job of a step that saves goes on behind a limit of time; that of another step comes to the same
  // limit.
  AttemptEnd ended(const TaskFiles& files, const SlurmJob& job, bool saves) const {
    using How = AttemptEnd::How;
    sleep(files, kAnswerTime, [] { return false; });
    const SlurmFate fate = cluster::fate_of(job.state);
    const bool taken = fate == SlurmFate::kTaken && (saves || job.state != "TIMEOUT");
    return {taken                           ? How::kTaken
            : fate == SlurmFate::kCancelled ? How::kCancelled
                                            : How::kEnded,
            job_text(job) + last_words(fs_, output_file(files))};
  }

  io::FileSystem& fs_;
  SlurmOptions options_;
  std::string program_, folder_;
};

Status check_options(const SlurmOptions& options) {
  RETURN_IF_ERROR(cluster::check_sbatch_options(options.sbatch, "ostro lab run"));
  constexpr std::string_view kCpus[] = {"--cpus-per-task", "-c"};
  if (const auto uses = cluster::sbatch_uses(options.sbatch, kCpus); !uses.empty())
    return invalid_argument(
        fmt::format("--sbatch: {} is set by `ostro lab run` itself; use --cpus", uses.front().word));
  return {};
}

}  // namespace

Result<std::unique_ptr<Cluster>> slurm_jobs(io::FileSystem& fs, const SlurmOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  ASSIGN_OR_RETURN(std::string program, own_path());
  std::error_code error;
  std::string folder = std::filesystem::current_path(error).string();
  if (error) return io_error(fmt::format("the current folder: {}", error.message()));
  const auto jobs = cluster::SlurmQueue("ostro-lab", cluster::hidden_from_slurm(environ)).jobs();
  if (!jobs.ok()) return jobs.error().with_context("--place slurm");
  return std::unique_ptr<Cluster>(
      std::make_unique<SlurmCluster>(fs, options, std::move(program), std::move(folder)));
}

}  // namespace ostro::lab
