// admit, compare_bits: check that a device computes as docs/spec/numerics.md says, by comparing it with the
// host case by case.
//
// Many cases are of the kind in which machines differ: results near 2^-126, which show a flush to zero before
// rounding or by a comparison; ties; special values. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cuda/device/device.h"

namespace ostro::cuda {

// The result for one operation: how many cases were compared and how many differ, and the first that does
// ("case 17: 0x00800000, not 0x00000000").
struct BitsCompared {
  std::string name;
  int64_t cases = 0, differ = 0;
  std::string first;
};

// Compares `cases` cases of every operation, with `threads` threads of the host. With 2^32 cases, operations
// of one operand get every number. Errors: those of the device.
Result<std::vector<BitsCompared>> compare_bits(Device& device, int64_t cases, int threads);

// The check before a device is used; takes some milliseconds. Error: kUnsupported when an operation differs;
// the device must not be used then.
Status admit(Device& device);

}  // namespace ostro::cuda
