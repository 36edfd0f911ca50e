#include "ostro/kernels/attention/paged/kernels/paged.inc.h"
#include "ostro/machine/vector/vec_avx512.h"

namespace ostro::kernels {

const PagedKernels& paged_avx512() {
  static const PagedKernels table = paged_table<machine::VecAvx512>();
  return table;
}

}  // namespace ostro::kernels
