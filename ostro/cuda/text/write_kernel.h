// write_nests: writes nests as device text.
//
// A flat nest has one thread an element. A nest with rows has one block of 64 threads a row: element j is
// that of thread j mod 64, so its lanes are N4's. A serial sum has one thread an output. Equal nests give
// equal text. Pure functions; there are no errors.
#pragma once

#include <span>
#include <string>

#include "ostro/compile/nest/nest.h"

namespace ostro::cuda {

// Kernels "k0", "k1", ... of the nests, without what every text begins with (device_text). The argument of
// kernel i is struct k<i>_args: the addresses of the nest's accesses as u64, then the i64 `extent` of the
// step.
std::string write_nests(std::span<const compile::Nest> nests);

// How a kernel is launched for a step of that extent: either `threads`, in any blocks, or `blocks` of 64
// threads; and what it gets as its own extent.
struct NestLaunch {
  int64_t threads = 0, blocks = 0, extent = 0;
};
NestLaunch launch_of(const compile::Nest& nest, int64_t extent);

}  // namespace ostro::cuda
