// write_nests: writes nests as device text.
//
// A thread of a flat nest computes up to four elements. A nest with rows has one block of 64 threads for each
// row: thread j mod 64 computes element j, so the threads are the lanes of N4. A serial sum is added up by
// one thread (write_serial.cc). Equal nests give equal text. Pure functions; there are no errors.
#pragma once

#include <span>
#include <string>

#include "ostro/compile/nest/nest.h"

namespace ostro::cuda {

// Kernels "k0", "k1", ... of the nests, without what every text begins with (device_text). The argument of
// kernel i is struct k<i>_args: the addresses of the nest's accesses as u64, then the i64 `extent` of the
// step. `fast`: Fast::kReductions; without it each element of a flat nest and each sum of a serial
// one has a thread, and nothing is shared.
std::string write_nests(std::span<const compile::Nest> nests, bool fast);

// The launch of a kernel for a step, and the `extent` that the kernel gets; `fast` as it was written.
struct NestLaunch {
  int64_t blocks = 0;
  int threads = 64;  // of a block
  int64_t extent = 0;
};
NestLaunch launch_of(const compile::Nest& nest, int64_t extent, bool fast);

}  // namespace ostro::cuda
