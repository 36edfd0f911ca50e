// Event, Observer: reports of a coordinator about joining and leaving workers, for a launcher or a log.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ostro::cluster {

// One event; the kind decides the fields.
struct Event {
  enum class Kind {
    kJoined,   // a worker
    kRefused,  // a worker, with the reason
    kEpoch,    // its number and its workers, by rank
    kLost,     // a worker, with the reason
    kLeft,     // a worker, on its own request, or because the run is over
  };
  struct Worker {
    std::string host;
    int64_t pid = 0;
  };
  Kind kind = Kind::kJoined;
  std::vector<Worker> workers;  // one; for kEpoch all
  int64_t epoch = 0;
  std::string why;
};

// Called from the coordinator's thread, which does nothing else meanwhile. Must not wait.
using Observer = std::function<void(const Event&)>;

}  // namespace ostro::cluster
