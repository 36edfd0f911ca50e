// Products of a few rows with an int8 matrix, on AVX2.
#include "ostro/kernels/products/kernels/int8_rows.inc.h"
#include "ostro/machine/vector/vec_avx2.h"

namespace ostro::cpu {

const Int8Kernel& int8_avx2() {
  static constexpr Int8Kernel kKernel = kernels::int8_kernel<kernels::VecAvx2>();
  return kKernel;
}

}  // namespace ostro::cpu
