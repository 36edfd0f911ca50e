// CrossEntropyKernels: the cross-entropy kernels of one instruction set, as a table of functions
// (docs/spec/numerics.md, N11).
//
// Each function does rows [begin, end) of the arguments that cross_entropy.h describes. Rows are independent,
// so threads may do different rows at the same time. There are no errors.
#pragma once

#include <cstdint>

#include "ostro/kernels/losses/cross_entropy.h"

namespace ostro::kernels {

struct CrossEntropyKernels {
  void (*forward)(const CrossEntropyForward& args, int64_t begin, int64_t end);
  void (*backward)(const CrossEntropyBackward& args, int64_t begin, int64_t end);
  // Forward and backward row by row. `scratch`, vocab floats, keeps the exponentials of a row between the
  // two.
  void (*both)(const CrossEntropyForward& forward, const CrossEntropyBackward& backward, int64_t begin,
               int64_t end, float* scratch);
  // sums[row] = the sum of exponentials of a row with the given maximum m[row].
  void (*sum)(const CrossEntropyForward& args, const float* m, float* sums, int64_t begin, int64_t end);
};

const CrossEntropyKernels& cross_entropy_generic();
const CrossEntropyKernels& cross_entropy_avx2();
const CrossEntropyKernels& cross_entropy_avx512();

}  // namespace ostro::kernels
