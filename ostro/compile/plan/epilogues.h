// add_fingerprint_epilogues, add_gradient_epilogues: make steps epilogues, which run on each piece of another
// step's output while the piece is still in cache (Step::epilogues). Internal to compile.
#pragma once

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// A fingerprint of a value that a pointwise kernel makes becomes an epilogue of that kernel, so the value is
// not read from memory again. Call it before plan_memory.
void add_fingerprint_epilogues(Plan& plan);

// The gradient of a cross-entropy becomes an epilogue of its loss, so the logits are read from memory once.
// When no other step reads the logits, the gradient overwrites them. Call it before plan_memory.
void add_gradient_epilogues(Plan& plan);

}  // namespace ostro::compile
