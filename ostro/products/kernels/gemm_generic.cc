// Matrix product tiles without intrinsics, for x86-64-v3; the compiler vectorises over columns.
#include "ostro/products/tile/gemm_pack.inc.h"
#include "ostro/products/tile/gemm_store.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 4, kF32Nr = 64, kNr = 32;

float widen(uint32_t high_half) {
  float x;
  std::memcpy(&x, &high_half, sizeof x);
  return x;
}

// One row at a time: without intrinsics, only the accumulators of one row fit into registers.
void f32_row(int64_t k, const float* a, const float* b, float* c, bool first) {
  float acc[kF32Nr];
  for (int j = 0; j < kF32Nr; ++j) acc[j] = first ? 0.0f : c[j];
  for (int64_t i = 0; i < k; ++i, a += kMr, b += kF32Nr)
    for (int j = 0; j < kF32Nr; ++j) acc[j] = __builtin_fmaf(a[0], b[j], acc[j]);
  for (int j = 0; j < kF32Nr; ++j) c[j] = acc[j];
}

void f32_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  for (int r = 0; r < rows; ++r)
    f32_row(k, static_cast<const float*>(a) + r, static_cast<const float*>(b), c + r * ldc, first);
}

// One row and one group: an even and an odd chain for every column, then c plus their sum (N7).
void bf16_group(const float* a, const uint32_t* b, float* c, bool zero) {
  float e[kNr] = {}, o[kNr] = {};
  for (int j = 0; j < kGroup / 2; ++j, a += 2 * kMr, b += kNr) {
    for (int n = 0; n < kNr; ++n) {
      e[n] = __builtin_fmaf(a[0], widen(b[n] << 16), e[n]);
      o[n] = __builtin_fmaf(a[kMr], widen(b[n] & 0xffff0000u), o[n]);
    }
  }
  for (int n = 0; n < kNr; ++n) c[n] = (zero ? 0.0f : c[n]) + (e[n] + o[n]);
}

void bf16_multiply(int64_t k, const void* a_panel, const void* b_panel, float* c, int64_t ldc, int rows,
                   bool first) {
  const float* a = static_cast<const float*>(a_panel);
  const uint32_t* b = static_cast<const uint32_t*>(b_panel);
  for (int64_t k0 = 0; k0 < k; k0 += kGroup, a += kGroup * kMr, b += kGroup / 2 * kNr)
    for (int r = 0; r < rows; ++r) bf16_group(a + r, b, c + r * ldc, first && k0 == 0);
}

}  // namespace

const GemmKernel& gemm_f32_generic() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kF32Nr,
                                         1,
                                         kMr * 4,
                                         kF32Nr * 4,
                                         pack_f32_panel<kMr>,
                                         pack_f32_panel<kF32Nr>,
                                         f32_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_plain<kF32Nr>,
                                         store_bf16_plain<kF32Nr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         128};
  return kKernel;
}

const GemmKernel& gemm_bf16_generic() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 4,
                                         kNr * 2,
                                         pack_groups<kGroup * kMr, pack_group_expanded<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs<kNr>>,
                                         bf16_multiply,
                                         1,
                                         round_row_plain,
                                         store_f32_plain<kNr>,
                                         store_bf16_plain<kNr, round_row_plain>,
                                         nullptr,
                                         nullptr,
                                         256,
                                         128};
  return kKernel;
}

}  // namespace ostro::kernels
