// Steps that run on each piece of another step's work while it is in cache. Internal to compile.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Moves fingerprints of a value that a pointwise kernel makes behind that kernel (Step::behind): then the
// value is not read from memory again. Before buffers have places.
void put_fingerprints_behind(Plan& plan);

// Moves the gradient of a cross-entropy behind its loss: then logits are read from memory once. Where nobody
// else wants the logits, the gradient takes their place. Before buffers have places.
void put_cross_entropy_gradients_behind(Plan& plan);

}  // namespace ostro::compile
