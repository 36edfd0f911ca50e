// Products of a few rows with an int8 matrix, on AVX2.
#include "ostro/machine/vector/vec_avx2.h"
#include "ostro/products/kernels/int8_rows.inc.h"

namespace ostro::kernels {

const Int8Kernel& int8_avx2() {
  static constexpr Int8Kernel kKernel = int8_kernel<machine::VecAvx2>();
  return kKernel;
}

}  // namespace ostro::kernels
