// Products by the rule of tensor cores (docs/spec/numerics.md, N23) without vectors: each output step by
// step.
#include "ostro/products/tc16/kernels/tc16_step.inc.h"
#include "ostro/products/tile/gemm_pack.inc.h"
#include "ostro/products/tile/gemm_store.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kTcMr = 4, kTcNr = 32;

void tc16_multiply(int64_t k, const void* a_panel, const void* b_panel, float* c, int64_t ldc, int rows,
                   bool first) {
  const auto* a = static_cast<const uint32_t*>(a_panel);
  const auto* b = static_cast<const uint32_t*>(b_panel);
  for (int64_t at = 0; at < k; at += kTc16, a += kTc16 * kTcMr, b += kTc16 * kTcNr)
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < kTcNr; ++j) {
        float& to = c[r * ldc + j];
        to = tc16_step(a + r, kTcMr, b + j, kTcNr, first && at == 0 ? 0.0f : to);
      }
}

}  // namespace

const GemmKernel& gemm_tc16_generic() {
  static constexpr GemmKernel kKernel = {kTcMr,
                                         kTcNr,
                                         kGroup,
                                         kTcMr * 4,
                                         kTcNr * 4,
                                         pack_groups<kGroup * kTcMr, pack_group_expanded<kTcMr>>,
                                         pack_groups<kGroup * kTcNr, pack_group_expanded<kTcNr>>,
                                         tc16_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_plain<kTcNr>,
                                         store_bf16_plain<kTcNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         128};
  return kKernel;
}

}  // namespace ostro::kernels
