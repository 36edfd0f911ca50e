// write_kernels: writes nests as functions for a C compiler.
//
// A function has loops over a range of the nest's given size, and reductions in 64 lanes that the compiler
// makes vectors of. Equal nests give equal text. A pure function; there are no errors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/compile/nest/nest.h"
#include "ostro/compile/text/dialect.h"

namespace ostro::cpu {

// A function without includes; the prelude of its dialect comes before it. Signature: void name(char* const*
// buf, int64_t begin, int64_t end), where buf holds the pointers of the nest's accesses, and [begin, end) is
// the range of the loop whose size is given (kSerial: of pieces, each a tile of outputs).
struct Kernel {
  std::string name;
  std::string source;
};

// Nest i becomes the function "k<i>".
std::vector<Kernel> write_kernels(std::span<const compile::Nest> nests, const compile::Dialect& dialect);

}  // namespace ostro::cpu
