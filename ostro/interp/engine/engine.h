// make_interpreter: the reference Engine: executes a Program op by op in plain scalar C++, exactly as
// docs/spec/numerics.md and docs/spec/ops.md say. It is the specification: every compiled kernel must give
// the same bits. Slow, obvious, short, and it shares no code with the compiler.
//
// Where to read: ops.cc is the table from op to function; each family of ops has one file. An op iterates
// over an index space named by axes; offsets() (index_space.h) turns that space into positions of an operand.
// Contractions and sums over axes of the Program's leaf table are cut and tree-combined by leaves.h alone.
#pragma once

#include <memory>

#include "ostro/runtime/engine.h"

namespace ostro::interp {

// compile() verifies the program; run() checks the inputs' count and shapes and never overwrites an input.
// Programs with collective ops need RunContext::collectives.
std::unique_ptr<runtime::Engine> make_interpreter();

// True when the interpreter has a function for the op. A test checks that it has one for all.
bool interprets(ir::OpKind kind);

}  // namespace ostro::interp
