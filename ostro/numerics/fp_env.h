// set_fp_env, HostArithmetic: the floating-point environment that every bit depends on
// (docs/spec/numerics.md, N0): round to nearest even, denormal operands read as zero, tiny results flushed to
// zero, no traps. It is per thread: an existing pool thread does not inherit later changes, and a foreign
// call may reset it.
#pragma once

#include <cstdint>

namespace ostro::numerics {

// Sets the environment of the calling thread.
void set_fp_env();

// Returns whether the calling thread computes as N0 says.
bool fp_env_is_set();

// HostArithmetic: the environment for a scope in which the host computes something that bits depend on.
// Its destructor restores the environment of before. Enter the scope in a function above the one that
// computes: a compiler may move plain arithmetic out of the scope, but not a call.
class HostArithmetic {
 public:
  HostArithmetic();
  ~HostArithmetic();
  HostArithmetic(const HostArithmetic&) = delete;
  HostArithmetic& operator=(const HostArithmetic&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace ostro::numerics
