#include "ostro/numerics/fp_env.h"

#if !defined(__x86_64__)
#error "write the floating-point environment of this processor here (docs/spec/numerics.md, N0)"
#endif

#include <immintrin.h>

namespace ostro::numerics {
namespace {

constexpr uint32_t kMxcsr = 0x9fc0;        // FTZ, all exceptions masked, DAZ, nearest even
constexpr uint32_t kMxcsrSticky = 0x003f;  // exception flags, which say what happened and change nothing

}  // namespace

void set_fp_env() { _mm_setcsr(kMxcsr); }

bool fp_env_is_set() { return (_mm_getcsr() & ~kMxcsrSticky) == kMxcsr; }

HostArithmetic::HostArithmetic() : saved_(_mm_getcsr()) { set_fp_env(); }
HostArithmetic::~HostArithmetic() { _mm_setcsr(saved_); }

}  // namespace ostro::numerics
