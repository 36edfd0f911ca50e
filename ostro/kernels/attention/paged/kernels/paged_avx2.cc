#include "ostro/kernels/attention/paged/kernels/paged.inc.h"
#include "ostro/machine/vector/vec_avx2.h"

namespace ostro::kernels {

const PagedKernels& paged_avx2() {
  static const PagedKernels table = paged_table<machine::VecAvx2>();
  return table;
}

}  // namespace ostro::kernels
