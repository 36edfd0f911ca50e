// Products of a few rows with an int8 matrix, without intrinsics.
#include "ostro/machine/vector/vec_generic.h"
#include "ostro/products/kernels/int8_rows.inc.h"

namespace ostro::kernels {

const Int8Kernel& int8_generic() {
  static constexpr Int8Kernel kKernel = int8_kernel<machine::VecGeneric>();
  return kKernel;
}

}  // namespace ostro::kernels
