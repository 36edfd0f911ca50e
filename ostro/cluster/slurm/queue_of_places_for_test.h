// QueueOfPlaces: the places of a run with the queue beside them, and a clock that a test moves.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ostro/cluster/slurm/places.h"
#include "ostro/cluster/slurm/queue.h"

namespace ostro::cluster {

using SlurmLines = std::vector<std::string>;

// Jobs are numbered from 1 in the order in which they are submitted.
struct QueueOfPlaces {
  explicit QueueOfPlaces(const SlurmLimits& limits) : places(limits) {}
  // Submits what is due; returns how many that were.
  size_t submit() {
    const auto due = places.due(now);
    for (const size_t place : due) {
      places.submitted(place, std::to_string(++last));
      jobs.push_back({std::to_string(last), "PENDING", "None", ""});
    }
    return due.size();
  }
  SlurmLines set(size_t job, const char* state, const char* nodes = "", int64_t progress = 1) {
    jobs[job - 1].state = state;
    if (*nodes != '\0') jobs[job - 1].nodes = nodes;
    return places.look(jobs, progress, now);
  }

  SlurmPlaces places;
  SlurmPlaces::Clock::time_point now = SlurmPlaces::Clock::now();
  std::vector<SlurmJob> jobs;
  int last = 0;
};

}  // namespace ostro::cluster
