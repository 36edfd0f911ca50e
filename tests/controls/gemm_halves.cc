// The generic kernels with a fault that can be armed. This object is linked before the room `kernels`, whose
// own file of these kernels then stays out of the program.
#include "tests/controls/gemm_halves.h"

#define gemm_bf16_generic right_gemm_bf16_generic
#include "ostro/products/kernels/gemm_generic.cc"
#undef gemm_bf16_generic

namespace ostro::kernels {

const GemmKernel& gemm_bf16_generic();

namespace {

bool halves = false;

// The first or the second half of each group is replaced by zeros, which add nothing but a sum of its own.
void bf16_multiply_halves(int64_t k, const void* a_panel, const void* b_panel, float* c, int64_t ldc,
                          int rows, bool first) {
  constexpr int64_t kAdmitted = 64;
  if (!halves || k <= kAdmitted) return bf16_multiply(k, a_panel, b_panel, c, ldc, rows, first);
  const auto* a = static_cast<const float*>(a_panel);
  const auto* b = static_cast<const uint32_t*>(b_panel);
  float half[kGroup * kMr];
  for (int64_t k0 = 0; k0 < k; k0 += kGroup, a += kGroup * kMr, b += kGroup / 2 * kNr)
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < kGroup * kMr; ++i) half[i] = i / (kGroup / 2 * kMr) == h ? a[i] : 0.0f;
      bf16_multiply(kGroup, half, b, c, ldc, rows, first && k0 == 0 && h == 0);
    }
}

}  // namespace

void sum_in_halves() { halves = true; }

const GemmKernel& gemm_bf16_generic() {
  static const GemmKernel kKernel = [] {
    GemmKernel kernel = right_gemm_bf16_generic();
    kernel.multiply = bf16_multiply_halves;
    return kernel;
  }();
  return kKernel;
}

}  // namespace ostro::kernels
