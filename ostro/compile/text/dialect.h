// Dialect: the differences between the languages in which generated code is written, as a table for each. All
// are close to C: types, arithmetic, control flow and the expression of an op are the same in all of them.
//
// Fixed text; any thread may read it.
#pragma once

#include <string_view>

namespace ostro::compile {

struct Dialect {
  std::string_view name;
  std::string_view language;  // options that tell the compiler which language this is
  std::string_view head;      // the first lines of a file
  std::string_view
      loops;  // defines EACH and EACH_OF_FEW, which stand before a loop whose turns are independent;
              // EACH_OF_FEW where it has at most 16 turns and stands in a loop over rows
  std::string_view function;  // what stands before a function of the prelude
  std::string_view kernel;    // what stands before the name of a kernel
  std::string_view bits;      // defines bits32, f32_of, bits64 and f64_of: between a number and its bits
  std::string_view literals;  // defines lit32 and lit64: a number of these bits that the compiler cannot fold
  // Functions, and expressions of type double.
  std::string_view fma32, fma64, sqrt32, sqrt64, floor32, infinity, nan;
};

// The dialect of gcc and clang, with their builtins, `#pragma` and `asm`. The CPU engine uses it.
const Dialect& gnu_dialect();
// ISO C11 with <math.h> and <string.h> alone: the same arithmetic for any compiler, but slower.
const Dialect& plain_dialect();

// The dialect of this name; nullptr when there is none.
const Dialect* find_dialect(std::string_view name);

}  // namespace ostro::compile
