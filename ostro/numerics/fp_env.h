// FpEnvGuard: the floating-point environment that every bit depends on (docs/spec/numerics.md, N0): round to
// nearest even, denormal operands read as zero, tiny results flushed to zero, no traps.
//
// MXCSR is per thread: an existing pool thread does not inherit later changes, and a foreign call may reset
// it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace ostro::numerics {

inline constexpr uint32_t kMxcsr = 0x9fc0;        // FTZ, all exceptions masked, DAZ, nearest even
inline constexpr uint32_t kMxcsrSticky = 0x003f;  // exception flags, which change no result

// Sets MXCSR of the calling thread.
inline void set_fp_env() { _mm_setcsr(kMxcsr); }

// Returns whether the calling thread computes as N0 says.
inline bool fp_env_is_set() { return (_mm_getcsr() & ~kMxcsrSticky) == kMxcsr; }

// Sets the environment for a scope and restores what was there before. Enter the scope in a function above
// the one that computes: a compiler may move plain arithmetic across the write of MXCSR, but not across a
// call.
class FpEnvGuard {
 public:
  FpEnvGuard() : saved_(_mm_getcsr()) { set_fp_env(); }
  ~FpEnvGuard() { _mm_setcsr(saved_); }
  FpEnvGuard(const FpEnvGuard&) = delete;
  FpEnvGuard& operator=(const FpEnvGuard&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace ostro::numerics
