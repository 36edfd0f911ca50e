#include "ostro/cluster/slurm/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ostro::cluster {
namespace {

constexpr int kMostJobFailures = 3;  // in a row, in one place, of a run that has trained
constexpr std::chrono::seconds kJobLived{
    60};  // a job that ran for so long was not at its start when it failed

// For so long the queue need not list a job that sbatch has put into it.
constexpr std::chrono::seconds kListed{30};
constexpr const char* kUnlisted = "not listed by Slurm";

}  // namespace

SlurmPlaces::SlurmPlaces(const SlurmLimits& limits)
    : limits_(limits),
      nodes_(limits.left_out_after, limits.left_out_for),
      places_(static_cast<size_t>(limits.count)) {}

// A job that runs already has done so for an unknown time.
void SlurmPlaces::take(Place& place, const SlurmJob& job, Clock::time_point now) {
  place.job = job.id, place.state = job.state, place.nodes = job.nodes;
  if (fate_of(job.state) == SlurmFate::kRuns) place.runs_since = now;
}

std::vector<std::string> SlurmPlaces::adopt(const std::vector<SlurmJob>& queue, Clock::time_point now) {
  std::vector<std::string> extra;
  size_t place = 0;
  // Those that run come first: they have a part of the state.
  for (const SlurmFate fate : {SlurmFate::kRuns, SlurmFate::kWaits})
    for (const SlurmJob& job : queue) {
      if (fate_of(job.state) != fate || is_ending(job)) continue;
      if (place == places_.size()) {
        extra.push_back(job.id);
        continue;
      }
      take(places_[place], job, now);
      listed_ = true;
      ++place;
    }
  return extra;
}

// sbatch may fail, as with a timeout, although Slurm has taken the job.
void SlurmPlaces::adopt_unknown(const std::vector<SlurmJob>& queue, Clock::time_point now,
                                std::vector<std::string>& lines) {
  for (const SlurmJob& job : queue) {
    if (!is_alive(job) || is_ending(job)) continue;
    if (std::any_of(places_.begin(), places_.end(), [&](const Place& p) { return p.job == job.id; }))
      continue;
    const auto place = std::find_if(places_.begin(), places_.end(),
                                    [](const Place& p) { return p.job.empty() && !p.cancelled; });
    if (place == places_.end()) return;
    take(*place, job, now);
    place->again.reset();
    listed_ = true;
    lines.push_back(fmt::format("job {} of this run, of which sbatch told nothing, takes a place", job.id));
  }
}

std::vector<std::string> SlurmPlaces::look(const std::vector<SlurmJob>& queue, int64_t progress,
                                           Clock::time_point now) {
  std::vector<std::string> lines;
  if (progress != progress_) replaced_ = 0;
  progress_ = progress;
  for (Place& place : places_)
    if (!place.job.empty()) look_at(place, queue, now, lines);
  adopt_unknown(queue, now, lines);
  try_again(now, lines);
  if (!hopeless_ && replaced_ > limits_.replacements_without_progress * limits_.count)
    hopeless_ = fmt::format("{} jobs were replaced already while no step was done", replaced_ - 1);
  return lines;
}

// A job that waits may wait for ever when it leaves out a node.
void SlurmPlaces::try_again(Clock::time_point now, std::vector<std::string>& lines) {
  const std::vector<std::string> left_out = nodes_.names(now);
  for (Place& place : places_) {
    if (place.job.empty() || place.state.empty() || fate_of(place.state) != SlurmFate::kWaits) continue;
    const auto back = std::find_if(place.without.begin(), place.without.end(), [&](const std::string& node) {
      return std::find(left_out.begin(), left_out.end(), node) == left_out.end();
    });
    if (back == place.without.end()) continue;
    lines.push_back(fmt::format("job {} waits without {}, which is tried again: another takes its place",
                                place.job, *back));
    given_up_.push_back(place.job);
    const int failures = place.failures;
    place = Place();
    place.failures = failures;
  }
}

void SlurmPlaces::look_at(Place& place, const std::vector<SlurmJob>& queue, Clock::time_point now,
                          std::vector<std::string>& lines) {
  const auto found =
      std::find_if(queue.begin(), queue.end(), [&](const SlurmJob& j) { return j.id == place.job; });
  if (found == queue.end()) {
    if (place.state.empty())
      missed(place, now, lines);
    else
      ended(place, {place.job, "forgotten by Slurm", "", ""}, SlurmFate::kTaken, now, lines);
    return;
  }
  listed_ = true;
  const SlurmJob& job = *found;
  const SlurmFate fate = fate_of(job.state);
  // One that fails between two looks has a node also. What a requeued job names is where it was.
  if (fate != SlurmFate::kWaits && !job.nodes.empty()) place.nodes = job.nodes;
  if (!is_alive(job)) return ended(place, job, fate, now, lines);
  const bool ran = !place.state.empty() && fate_of(place.state) == SlurmFate::kRuns;
  if (fate == SlurmFate::kWaits && ran)
    lines.push_back(fmt::format("job {} was taken from {} and waits for another start ({})", job.id,
                                place.nodes, job.reason));
  else if (fate == SlurmFate::kWaits && job.reason != place.told_reason && job.reason != "None")
    lines.push_back(fmt::format("job {} waits ({})", job.id, job.reason));
  else if (fate == SlurmFate::kRuns && !ran)
    lines.push_back(fmt::format("job {} runs on {}", job.id, job.nodes));
  if (fate == SlurmFate::kRuns && !ran) place.runs_since = now;
  place.told_reason = fate == SlurmFate::kWaits ? job.reason : "";
  place.state = job.state;
  if (fate == SlurmFate::kWaits) place.nodes.clear(), place.runs_since.reset();
}

// The queue does not list a job that it has never listed.
void SlurmPlaces::missed(Place& place, Clock::time_point now, std::vector<std::string>& lines) {
  if (!place.missed) place.missed = now;
  if (now - *place.missed < kListed) return;
  if (!listed_) {
    hopeless_ = fmt::format(
        "Slurm does not list job {}, which sbatch has put into the queue; squeue must show the user's jobs",
        place.job);
    return;
  }
  given_up_.push_back(place.job);
  ended(place, {place.job, kUnlisted, "", ""}, SlurmFate::kFailed, now, lines);
}

void SlurmPlaces::ended(Place& place, const SlurmJob& job, SlurmFate fate, Clock::time_point now,
                        std::vector<std::string>& lines) {
  const std::string node = place.nodes;
  const std::string where = node.empty() ? "" : " on " + node;
  const bool lived = place.runs_since && now - *place.runs_since > kJobLived;
  const int failures = lived ? 0 : place.failures;
  place = Place();
  place.failures = failures;
  if (lived || fate == SlurmFate::kEnded) nodes_.worked(node);
  if (fate == SlurmFate::kCancelled) {
    place.cancelled = true;
    lines.push_back(fmt::format("job {}{} was cancelled; none takes its place", job.id, where));
    return;
  }
  ++replaced_;
  if (fate == SlurmFate::kFailed) {
    failed_job_ = job.id;
    failed(place, now);
    const bool left_out = nodes_.failed(node, now);
    const double rest = place.again ? std::chrono::duration<double>(*place.again - now).count() : 0;
    lines.push_back(
        fmt::format("job {}{} ended with an error ({}); the others go on, and another is tried in {:.0f} s",
                    job.id, where, job.state, rest));
    const auto left = static_cast<int64_t>(alive().size());
    if (left < limits_.least && (progress_ == 0 || place.failures >= kMostJobFailures))
      hopeless_ = fmt::format("{} jobs are left, and {} are needed", left, limits_.least);
    if (!left_out) return;
    place.failures = 0;  // the next one goes elsewhere
    lines.push_back(fmt::format("the next jobs leave out {}, where {} in a row have failed, for {:.0f} s",
                                node, nodes_.failures(node),
                                std::chrono::duration<double>(limits_.left_out_for).count()));
    return;
  }
  place.failures = 0;
  lines.push_back(
      fate == SlurmFate::kEnded
          ? fmt::format("job {}{}: its workers have left; another takes its place", job.id, where)
          : fmt::format("job {}{} ended ({}); another takes its place", job.id, where, job.state));
}

void SlurmPlaces::failed(Place& place, Clock::time_point now) {
  const int doublings = std::min(place.failures, 20);
  place.again = now + std::min(limits_.most_rest, limits_.rest * (int64_t{1} << doublings));
  ++place.failures;
}

std::vector<size_t> SlurmPlaces::due(Clock::time_point now) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.job.empty() && !place.cancelled && (!place.again || now >= *place.again)) out.push_back(i);
  }
  return out;
}

void SlurmPlaces::submitted(size_t place, const std::string& id, std::vector<std::string> without) {
  places_[place].job = id;
  places_[place].without = std::move(without);
  places_[place].again.reset();
}

void SlurmPlaces::refused(size_t place, Clock::time_point now) {
  places_[place].again = now + limits_.most_rest;
}

std::vector<std::string> SlurmPlaces::waiting() const {
  std::vector<std::string> out;
  for (const Place& place : places_)
    if (!place.job.empty() && (place.state.empty() || fate_of(place.state) == SlurmFate::kWaits))
      out.push_back(place.job);
  return out;
}

std::vector<std::string> SlurmPlaces::alive() const {
  std::vector<std::string> out;
  for (const Place& place : places_)
    if (!place.job.empty()) out.push_back(place.job);
  return out;
}

bool SlurmPlaces::any_runs() const {
  return std::any_of(places_.begin(), places_.end(), [](const Place& place) {
    return !place.job.empty() && !place.state.empty() && fate_of(place.state) == SlurmFate::kRuns;
  });
}

std::vector<std::string> SlurmPlaces::take_given_up() { return std::exchange(given_up_, {}); }

bool SlurmPlaces::too_few() const {
  return std::count_if(places_.begin(), places_.end(), [](const Place& place) { return !place.cancelled; }) <
         limits_.least;
}

}  // namespace ostro::cluster
