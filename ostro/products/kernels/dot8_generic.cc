// Products of int8 numbers with scales in plain C++ (docs/spec/numerics.md, N20).
#include <cmath>

#include "ostro/products/kernels/dot8_pack.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kDotMr = 4, kDotNr = 32;

void pack_generic_a(const Int8PanelSource& s, void* out, int32_t* sums) {
  pack8_words<kDotMr>(s, out);
  for (int row = 0; row < kDotMr; ++row) sums[row] = 0;
}

void dot8_generic_multiply(const Int8Tile& t) {
  const std::byte *a = t.a, *b = t.b;
  for (int64_t block = 0; block < t.blocks; ++block) {
    const int64_t steps = t.steps[block];
    const auto* x = reinterpret_cast<const int16_t*>(a);
    const auto* y = reinterpret_cast<const int16_t*>(b);
    const auto* x_scales = reinterpret_cast<const float*>(x + steps * kDotMr);
    const auto* y_scales = reinterpret_cast<const float*>(y + steps * kDotNr);
    int32_t sum[kDotMr][kDotNr] = {};
    for (int64_t k = 0; k < steps; k += 2, x += 2 * kDotMr, y += 2 * kDotNr)
      for (int i = 0; i < kDotMr; ++i)
        for (int j = 0; j < kDotNr; ++j) sum[i][j] += x[2 * i] * y[2 * j] + x[2 * i + 1] * y[2 * j + 1];
    for (int i = 0; i < kDotMr; ++i)
      for (int j = 0; j < kDotNr; ++j) {
        float& c = t.c[i * kDotNr + j];
        c = std::fma(static_cast<float>(sum[i][j]) * y_scales[j], x_scales[i],
                     block == 0 && t.first ? 0.0f : c);
      }
    a += kDotMr * (steps * 2 + 8);
    b += kDotNr * (steps * 2 + 4);
  }
}

}  // namespace

const DotInt8Kernel& dot8_generic() {
  static constexpr DotInt8Kernel kKernel = {.name = "generic",
                                            .mr = kDotMr,
                                            .nr = kDotNr,
                                            .k_unit = 2,
                                            .a_bytes = 2,
                                            .b_bytes = 2,
                                            .pack_a = pack_generic_a,
                                            .pack_b = pack8_words<kDotNr>,
                                            .multiply = dot8_generic_multiply,
                                            .store = gemm_bf16_generic};
  return kKernel;
}

}  // namespace ostro::kernels
