#include "ostro/cluster/watch/progress.h"

#include <algorithm>

namespace ostro::cluster {
namespace {

constexpr int64_t kMostOfProgress = int64_t{1} << 53;  // exact as a number of JSON

}  // namespace

bool Progress::sane() const {
  for (const int64_t value :
       {epoch, step, compute_microseconds, wait_microseconds, work, bytes_sent, bytes_between_slices})
    if (value < 0 || value > kMostOfProgress) return false;
  return phase.size() <= kMostBytesOfPhase &&
         std::all_of(phase.begin(), phase.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == ' '; });
}

}  // namespace ostro::cluster
