#include "ostro/kernels/attention/paged/kernels/paged.inc.h"
#include "ostro/machine/vector/vec_generic.h"

namespace ostro::kernels {

const PagedKernels& paged_generic() {
  static const PagedKernels table = paged_table<machine::VecGeneric>();
  return table;
}

}  // namespace ostro::kernels
