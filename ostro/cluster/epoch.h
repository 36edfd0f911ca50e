// What a worker says of itself, and what it is told: its place among the workers of a job.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ostro::cluster {

// What a worker says when it joins.
struct Hello {
  std::string job;
  // What must be equal in all workers (a program's hash, a world size): each a name and a value.
  std::vector<std::pair<std::string, std::string>> equal;
  std::string host;  // for messages
  int64_t pid = 0;   // for messages
};

// A set of workers that work together, as one of them sees it. It is never changed: when a worker is lost,
// the epoch ends, and another with a higher number begins.
struct Epoch {
  int64_t number = 0;  // 0: none yet
  int64_t rank = 0;    // of this worker; by order of joining, so the oldest has rank 0
  int64_t size = 0;
};

}  // namespace ostro::cluster
