// CrossEntropyKernels: the cross-entropy kernels of one instruction set, as a table of functions. Each does
// rows [begin, end), which are independent of each other.
#pragma once

#include <cstdint>

#include "ostro/kernels/losses/cross_entropy.h"

namespace ostro::kernels {

struct CrossEntropyKernels {
  void (*forward)(const CrossEntropyForward& args, int64_t begin, int64_t end);
  void (*backward)(const CrossEntropyBackward& args, int64_t begin, int64_t end);
  // Row by row, the exponentials of a row kept in `scratch` of vocab floats.
  void (*both)(const CrossEntropyForward& forward, const CrossEntropyBackward& backward, int64_t begin,
               int64_t end, float* scratch);
  void (*sum)(const CrossEntropyForward& args, const float* m, float* sums, int64_t begin, int64_t end);
};

const CrossEntropyKernels& cross_entropy_generic();
const CrossEntropyKernels& cross_entropy_avx2();
const CrossEntropyKernels& cross_entropy_avx512();

}  // namespace ostro::kernels
