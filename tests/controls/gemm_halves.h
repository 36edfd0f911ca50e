// sum_in_halves: a deliberate fault of the generic bf16 product.
#pragma once

namespace ostro::kernels {

// From now on the product sums each group of 32 in two halves, which N7 forbids, unless it has 64 terms or
// fewer: so many have the products that decide whether a kernel may be used (products/admission.cc).
void sum_in_halves();

}  // namespace ostro::kernels
