#include "ostro/products/kernels/quantize8.inc.h"

namespace ostro::kernels {

const Quantize8Kernel& quantize8_avx2() {
  static constexpr Quantize8Kernel kKernel = {quantize8_row, quantize8_columns};
  return kKernel;
}

}  // namespace ostro::kernels
