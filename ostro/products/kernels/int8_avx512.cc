// Products of a few rows with an int8 matrix, on AVX-512.
//
// gcc 12 takes what its own header leaves undefined, and its instructions do not read, for a mistake (its bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "ostro/machine/vector/vec_avx512.h"
#include "ostro/products/kernels/int8_rows.inc.h"

namespace ostro::kernels {

const Int8Kernel& int8_avx512() {
  static constexpr Int8Kernel kKernel = int8_kernel<machine::VecAvx512>();
  return kKernel;
}

}  // namespace ostro::kernels
