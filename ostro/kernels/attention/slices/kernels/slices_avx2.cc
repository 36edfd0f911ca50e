#include "ostro/kernels/attention/slices/kernels/slices.inc.h"

namespace ostro::kernels {

const SliceKernels& slices_avx2() { return kSliceKernels; }

}  // namespace ostro::kernels
