// Puts steps "behind" another step: they run on each piece of its output while the piece is still in cache
// (Step::behind). Internal to compile.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// A fingerprint of a value that a pointwise kernel makes goes behind that kernel, so the value is not read
// from memory again. Call it before plan_memory.
void put_fingerprints_behind(Plan& plan);

// The gradient of a cross-entropy goes behind its loss, so the logits are read from memory once. When no
// other step reads the logits, the gradient overwrites them. Call it before plan_memory.
void put_cross_entropy_gradients_behind(Plan& plan);

}  // namespace ostro::compile
