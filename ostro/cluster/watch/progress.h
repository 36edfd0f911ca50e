// Progress: the report on a worker's progress in each heartbeat.
#pragma once

#include <cstdint>
#include <string>

namespace ostro::cluster {

inline constexpr size_t kMostBytesOfPhase = 32;

// Read from untrusted messages: check sane() before use.
struct Progress {
  int64_t epoch = 0, step = 0;
  std::string phase;                                        // a word
  int64_t compute_microseconds = 0, wait_microseconds = 0;  // of the last step
  int64_t work = 0;                                         // its share of that step, in leaves
  int64_t bytes_sent = 0;                                   // to other workers, since its process began
  int64_t bytes_between_slices = 0;                         // those of them that went to other slices
  bool operator==(const Progress&) const = default;

  // True when it is safe to show and to compute with: no negative number, a short phase of small letters.
  bool sane() const;
};

}  // namespace ostro::cluster
