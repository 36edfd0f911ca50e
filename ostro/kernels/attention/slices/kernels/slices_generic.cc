#include "ostro/kernels/attention/slices/kernels/slices.inc.h"

namespace ostro::kernels {

const SliceKernels& slices_generic() { return kSliceKernels; }

}  // namespace ostro::kernels
