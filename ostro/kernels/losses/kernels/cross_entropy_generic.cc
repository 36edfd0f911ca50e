#include "ostro/kernels/losses/kernels/cross_entropy.inc.h"
#include "ostro/machine/vector/vec_generic.h"

namespace ostro::kernels {

const CrossEntropyKernels& cross_entropy_generic() {
  static const CrossEntropyKernels table = cross_entropy_table<machine::VecGeneric>();
  return table;
}

}  // namespace ostro::kernels
