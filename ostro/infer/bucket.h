// bucket_of: the lengths for which programs are compiled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ostro::infer {

// The padded length for `count` tokens. A single token is not padded. Otherwise it is the next power of two,
// at least 16 and at most max_length.
inline int64_t bucket_of(int64_t count, int64_t max_length = std::numeric_limits<int64_t>::max()) {
  if (count == 1) return 1;
  int64_t bucket = 16;
  while (bucket < count) bucket *= 2;
  return std::min(bucket, max_length);
}

}  // namespace ostro::infer
