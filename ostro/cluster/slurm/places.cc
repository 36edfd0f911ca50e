#include "ostro/cluster/slurm/places.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::cluster {
namespace {

constexpr int kMostJobFailures = 3;  // in a row, in one place, of a run that has trained
constexpr std::chrono::seconds kJobLived{
    60};  // a job that ran for so long was not at its start when it failed

bool is_alive(SlurmFate fate) { return fate == SlurmFate::kWaits || fate == SlurmFate::kRuns; }

}  // namespace

SlurmPlaces::SlurmPlaces(const SlurmLimits& limits)
    : limits_(limits), places_(static_cast<size_t>(limits.count)) {}

std::vector<std::string> SlurmPlaces::adopt(const std::vector<SlurmJob>& queue) {
  std::vector<std::string> extra;
  size_t place = 0;
  // Those that run come first: they have a part of the state.
  for (const SlurmFate fate : {SlurmFate::kRuns, SlurmFate::kWaits})
    for (const SlurmJob& job : queue) {
      if (fate_of(job.state) != fate) continue;
      if (place == places_.size()) {
        extra.push_back(job.id);
        continue;
      }
      places_[place].job = job.id, places_[place].state = job.state, places_[place].nodes = job.nodes;
      ++place;
    }
  return extra;
}

std::vector<std::string> SlurmPlaces::look(const std::vector<SlurmJob>& queue, int64_t progress,
                                           Clock::time_point now) {
  std::vector<std::string> lines;
  if (progress != progress_) replaced_ = 0;
  progress_ = progress;
  for (Place& place : places_) {
    if (place.job.empty()) continue;
    const auto found =
        std::find_if(queue.begin(), queue.end(), [&](const SlurmJob& j) { return j.id == place.job; });
    const SlurmJob job = found != queue.end() ? *found : SlurmJob{place.job, "forgotten by Slurm", "", ""};
    const SlurmFate fate = found != queue.end() ? fate_of(job.state) : SlurmFate::kTaken;
    if (!is_alive(fate)) {
      ended(place, job, now, lines);
      continue;
    }
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
    if (!job.nodes.empty()) place.nodes = job.nodes;
  }
  if (!hopeless_ && replaced_ > limits_.replacements_without_progress * limits_.count)
    hopeless_ = fmt::format("{} jobs were replaced already while no step was done", replaced_ - 1);
  return lines;
}

void SlurmPlaces::ended(Place& place, const SlurmJob& job, Clock::time_point now,
                        std::vector<std::string>& lines) {
  const SlurmFate fate = fate_of(job.state);
  const std::string where = place.nodes.empty() ? "" : " on " + place.nodes;
  const bool lived = place.runs_since && now - *place.runs_since > kJobLived;
  const int failures = lived ? 0 : place.failures;
  place = Place();
  place.failures = failures;
  if (fate == SlurmFate::kCancelled) {
    place.cancelled = true;
    lines.push_back(fmt::format("job {}{} was cancelled; none takes its place", job.id, where));
    return;
  }
  ++replaced_;
  if (fate == SlurmFate::kFailed) {
    failed_job_ = job.id;
    failed(place, now);
    const double rest = place.again ? std::chrono::duration<double>(*place.again - now).count() : 0;
    lines.push_back(
        fmt::format("job {}{} ended with an error ({}); the others go on, and another is tried in {:.0f} s",
                    job.id, where, job.state, rest));
    const auto left = static_cast<int64_t>(alive().size());
    if (left < limits_.least && (progress_ == 0 || place.failures >= kMostJobFailures))
      hopeless_ = fmt::format("{} jobs are left, and {} are needed", left, limits_.least);
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

void SlurmPlaces::submitted(size_t place, const std::string& id) {
  places_[place].job = id;
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

bool SlurmPlaces::too_few() const {
  return std::count_if(places_.begin(), places_.end(), [](const Place& place) { return !place.cancelled; }) <
         limits_.least;
}

}  // namespace ostro::cluster
