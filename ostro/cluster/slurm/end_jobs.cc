#include "ostro/cluster/slurm/end_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <thread>

#include "ostro/base/log.h"

namespace ostro::cluster {
namespace {

using EndClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGone{60};            // the longest wait for cancelled jobs to be gone
constexpr std::chrono::seconds kAgain{5};            // until they are cancelled once more
constexpr std::chrono::milliseconds kEachLook{500};  // from one look at the queue to the next

// The numbers of those jobs that are not about to end by themselves.
std::vector<std::string> not_ending(const std::vector<SlurmJob>& jobs) {
  std::vector<std::string> out;
  for (const SlurmJob& job : jobs)
    if (is_alive(job) && !is_ending(job)) out.push_back(job.id);
  return out;
}

}  // namespace

std::vector<SlurmJob> cancel_slurm_jobs(const SlurmQueue& queue, const std::vector<std::string>& own) {
  std::vector<SlurmJob> unlisted, left;
  for (const std::string& id : own) unlisted.push_back({id, "", "", ""});
  std::optional<EndClock::time_point> cancelled;
  for (const auto begun = EndClock::now(); EndClock::now() - begun < kGone;) {
    const auto listed = queue.jobs();
    left = unlisted;
    std::vector<std::string> ids;
    if (listed.ok()) {
      std::erase_if(unlisted, [&](const SlurmJob& job) {
        return std::any_of(listed->begin(), listed->end(), [&](const SlurmJob& l) { return l.id == job.id; });
      });
      ids = not_ending(*listed);
      left.clear();
      std::copy_if(listed->begin(), listed->end(), std::back_inserter(left), is_alive);
    }
    for (const SlurmJob& job : unlisted) ids.push_back(job.id);
    if (listed.ok()) unlisted.clear();
    if (!cancelled || EndClock::now() - *cancelled >= kAgain) {
      if (const Status done = queue.cancel(ids); !done.ok()) log_warning(done.error().message());
      cancelled = EndClock::now();
    }
    if (left.empty()) break;
    std::this_thread::sleep_for(kEachLook);
  }
  return left;
}

Status end_strange_jobs(const SlurmQueue& queue) {
  ASSIGN_OR_RETURN(const auto found, queue.jobs());
  const std::vector<std::string> strange = not_ending(found);
  const size_t count = strange.size();
  if (count == 0) return {};
  log_info(fmt::format(
      "{} job{} of an earlier launcher {} in the queue, which {} not this one's address, port and secret and "
      "cannot be told: cancelled, and others are submitted",
      count, count == 1 ? "" : "s", count == 1 ? "is" : "are", count == 1 ? "knows" : "know"));
  const auto left = not_ending(cancel_slurm_jobs(queue, strange));
  if (left.empty()) return {};
  return io_error(fmt::format(
      "jobs of an earlier launcher, which cannot be taken over, were cancelled and are in Slurm's "
      "queue still: {}; start this again when squeue does not list them any more",
      fmt::join(left, " ")));
}

}  // namespace ostro::cluster
