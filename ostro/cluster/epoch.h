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
  // The epoch that it is in, if it comes back after its connection was lost; 0: it is new.
  int64_t epoch = 0, rank = -1, size = 0;
};

// A set of workers that work together, as one of them sees it. It is never changed: when a worker is lost,
// the epoch ends, and another with a higher number begins.
struct Epoch {
  int64_t number = 0;  // 0: none yet
  int64_t rank = 0;    // of this worker; by order of joining, so the oldest has rank 0; -1: it leaves
  int64_t size = 0;
  bool planned = false;            // another one goes on until this one takes over
  std::vector<std::string> hosts;  // of each worker
};

}  // namespace ostro::cluster
