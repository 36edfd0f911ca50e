// exp2_block_sum: the sum of exponentials of a row, as softmax and cross-entropy take it
// (docs/spec/numerics.md, N11). A pure function; it reads the floating-point state of its thread (fp_env.h).
#pragma once

#include <span>

namespace ostro::numerics {

// exp2_block(x, y, kappa) of all x, summed by N4.
float exp2_block_sum(std::span<const float> x, float y, float kappa);

}  // namespace ostro::numerics
