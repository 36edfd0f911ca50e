// admit, compare_bits: whether a device computes as docs/spec/numerics.md says, compared with the host case
// by case.
//
// Cases are heavy in what differs between machines: results near 2^-126, where a flush before rounding or by
// a compare would show, ties, special values. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cuda/device/device.h"

namespace ostro::cuda {

// One operation: how many cases were compared and differ, and the first of these ("case 17: 0x00800000, not
// 0x00000000").
struct BitsCompared {
  std::string name;
  int64_t cases = 0, differ = 0;
  std::string first;
};

// Compares `cases` cases of every operation, on `threads` threads of the host. With 2^32 cases those with one
// operand have every number. Error: the device's.
Result<std::vector<BitsCompared>> compare_bits(Device& device, int64_t cases, int threads);

// The check at start, some milliseconds. Error: kUnsupported: an operation differs; the device must not be
// used.
Status admit(Device& device);

}  // namespace ostro::cuda
