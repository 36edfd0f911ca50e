#include "ostro/cluster/slurm/run_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/cluster/slurm/end_jobs.h"

namespace ostro::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstLook{1'000}, kLastLook{15'000};  // from one look at the queue to the next
constexpr std::chrono::seconds kJobsEnd{10};    // from the end of the run until its jobs are cancelled
constexpr std::chrono::seconds kQueueTold{60};  // until the next warning that the queue cannot be read

class Jobs {
 public:
  explicit Jobs(const SlurmRun& run) : run_(run), places_(run.limits) {}
  ~Jobs() {
    if (begun_) cancel_all();
  }

  Result<int> run() {
    ASSIGN_OR_RETURN(const auto found, run_.queue->jobs());
    begun_ = true;
    const auto extra = places_.adopt(found, Clock::now());
    if (const auto alive = places_.alive(); !alive.empty())
      log_info(fmt::format("{} job{} of this run {} in the queue already", alive.size(),
                           alive.size() == 1 ? "" : "s", alive.size() == 1 ? "is" : "are"));
    cancel(extra);
    RETURN_IF_ERROR(submit_first());
    while (true) {
      if (run_.look) run_.look();
      if (const auto code = step()) return *code;
      std::this_thread::sleep_for(milliseconds(50));
    }
  }

 private:
  Status submit_first() {
    for (const size_t place : places_.due(Clock::now()))
      if (const Status done = submit(place); !done.ok()) {
        if (static_cast<int64_t>(places_.alive().size()) < run_.limits.least) return done;
        refused(place, done);
      }
    log_info(fmt::format("{} jobs are in Slurm's queue: {}", places_.alive().size(),
                         fmt::join(places_.alive(), " ")));
    return {};
  }

  Status submit(size_t place) {
    const std::vector<std::string> left_out = places_.left_out(Clock::now());
    std::string without = fmt::format("{}", fmt::join(left_out, ","));
    if (!without.empty() && !run_.excluded.empty()) without = run_.excluded + "," + without;
    ASSIGN_OR_RETURN(const std::string id, run_.queue->submit(run_.script, without, run_.script_text));
    places_.submitted(place, id, left_out);
    return {};
  }

  void refused(size_t place, const Status& why) {
    log_warning(fmt::format("{}; it is asked again later", why.error().message()));
    places_.refused(place, Clock::now());
  }

  // The exit status, when all is over.
  std::optional<int> step() {
    const Clock::time_point now = Clock::now();
    const auto over = run_.over();
    if (!asked_ && !over && run_.stopping()) stopped(now);
    const bool connected = run_.members() > 0;
    had_members_ = had_members_ || connected;
    const bool ends = over || (asked_ && !connected && (had_members_ || result_ != 0 || !places_.any_runs()));
    if (ends && !ended_) {
      ended_ = now, next_ = now;
      cancel(places_.waiting());
    }
    if (asked_ && !over && run_.hurried && run_.hurried()) {
      log_info("the run's jobs are cancelled without waiting for its workers");
      return result_ != 0 ? result_ : run_.if_interrupted;
    }
    if (asked_ && !ends && now - *asked_ >= run_.stop_grace) {
      log_error(
          fmt::format("the run was not saved within {:.0f} s (trainer.stop_timeout); its jobs are cancelled",
                      std::chrono::duration<double>(run_.stop_grace).count()));
      return 1;
    }
    if (run_.events() != std::exchange(events_, run_.events()))
      pause_ = kFirstLook, next_ = std::min(next_, now + pause_);
    if (now >= next_) look(now);
    if (ended_ && (places_.alive().empty() || now - *ended_ >= kJobsEnd))
      return result_ != 0 ? result_ : over.value_or(run_.if_interrupted);
    return std::nullopt;
  }

  // No further job may start. What the workers have they save.
  void stopped(Clock::time_point now) {
    asked_ = now;
    cancel(places_.waiting());
  }

  void look(Clock::time_point now) {
    const auto queue = run_.queue->jobs();
    next_ = Clock::now() + (ended_ ? kFirstLook / 2 : pause_);
    if (!queue.ok()) {
      if (!told_ || now - *told_ >= kQueueTold)
        log_warning(fmt::format("{}; training goes on", queue.error().message())), told_ = now;
      return;
    }
    const auto lines = places_.look(*queue, run_.progress(), now);
    cancel(places_.take_given_up());
    if (!asked_ && !ended_ && !run_.over()) {  // jobs that squeue saw end may have ended with the run
      for (const std::string& line : lines) log_info(line);
      for (const size_t place : places_.due(now))
        if (const Status done = submit(place); !done.ok()) refused(place, done);
      judge();
    }
    pause_ = lines.empty() ? std::min(pause_ * 2, kLastLook) : kFirstLook;
    next_ = std::min(next_, Clock::now() + pause_);
  }

  void judge() {
    if (const auto& why = places_.hopeless()) {
      const std::string words = run_.last_words(places_.failed_job());
      log_error(
          fmt::format("{}: giving up{}{}", *why, words.empty() ? "" : "; a job wrote at last:\n", words));
      result_ = 1;
    } else if (places_.too_few()) {
      log_warning("so many jobs were cancelled that the run cannot go on: the others save and end");
    } else {
      return;
    }
    run_.stop();
    stopped(Clock::now());
  }

  void cancel(const std::vector<std::string>& ids) {
    if (const Status done = run_.queue->cancel(ids); !done.ok()) log_warning(done.error().message());
  }

  // Also those that this object does not know (sbatch may have been interrupted).
  void cancel_all() {
    std::vector<std::string> left;
    for (const SlurmJob& job : cancel_slurm_jobs(*run_.queue, places_.alive())) left.push_back(job.id);
    if (!left.empty())
      log_warning(
          fmt::format("jobs are in Slurm's queue still, and were cancelled: {}", fmt::join(left, " ")));
  }

  const SlurmRun& run_;
  SlurmPlaces places_;
  milliseconds pause_ = kFirstLook;
  Clock::time_point next_ = Clock::now() + kFirstLook;
  std::optional<Clock::time_point> asked_, ended_, told_;
  int64_t events_ = 0;
  bool begun_ = false, had_members_ = false;
  int result_ = 0;
};

}  // namespace

Result<int> run_slurm_jobs(const SlurmRun& run) { return Jobs(run).run(); }

}  // namespace ostro::cluster
