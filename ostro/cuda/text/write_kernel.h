// write_nests: writes nests as device text.
//
// A flat nest has one thread for each element. A nest with rows has one block of 64 threads for each row:
// thread j mod 64 computes element j, so the threads are the lanes of N4. A serial sum has one thread for
// each output. Equal nests give equal text. Pure functions; there are no errors.
#pragma once

#include <span>
#include <string>

#include "ostro/compile/nest/nest.h"

namespace ostro::cuda {

// Kernels "k0", "k1", ... of the nests, without what every text begins with (device_text). The argument of
// kernel i is struct k<i>_args: the addresses of the nest's accesses as u64, then the i64 `extent` of the
// step.
std::string write_nests(std::span<const compile::Nest> nests);

// The launch of a kernel for a step: either `threads`, in blocks of any size, or `blocks` of 64 threads each;
// and the `extent` that the kernel gets.
struct NestLaunch {
  int64_t threads = 0, blocks = 0, extent = 0;
};
NestLaunch launch_of(const compile::Nest& nest, int64_t extent);

}  // namespace ostro::cuda
