// Products of int8 numbers with scales on AMX: 32 x 32 outputs in four tile registers, TDPBSSD.
#include <immintrin.h>

#include "ostro/machine/vector/amx_tiles.inc.h"
#include "ostro/products/kernels/dot8_pack.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 32, kNr = 32, kK = 64;

// For each kK numbers, first 16 rows and then the other 16, kK bytes a row.
void pack8_tiles(const Int8PanelSource& s, void* out, int32_t* sums) {
  auto* to = static_cast<int8_t*>(out);
  for (int64_t k = 0; k < s.steps; k += kK)
    for (int row = 0; row < kMr; ++row, to += kK) {
      const int64_t count = row < s.rows ? s.count - k : 0;
      const int64_t whole = count < 0 ? 0 : count < kK ? count : kK;
      if (whole < kK) std::memset(to, 0, kK);
      if (whole > 0) std::memcpy(to, s.q + row * s.stride + k, static_cast<size_t>(whole));
    }
  for (int row = 0; row < kMr; ++row) sums[row] = 0;
}

// The sums of one block, [kMr][kNr]. `low`: the lower 16 rows too.
void sum_block(const std::byte* a, const std::byte* b, int64_t steps, bool low, int32_t* sums) {
  machine::amx_before_loads();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < steps; k += kK, a += kMr * kK, b += kNr * kK) {
    _tile_loadd(6, b, kNr * 4);
    _tile_loadd(4, a, kK);
    _tile_loadd(7, b + 64, kNr * 4);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    if (!low) continue;
    _tile_loadd(5, a + 16 * kK, kK);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, sums, kNr * 4);
  _tile_stored(1, sums + 16, kNr * 4);
  if (!low) return;
  _tile_stored(2, sums + 16 * kNr, kNr * 4);
  _tile_stored(3, sums + 16 * kNr + 16, kNr * 4);
}

void dot8_amx_multiply(const Int8Tile& t) {
  alignas(64) int32_t sums[kMr * kNr];
  const std::byte *a = t.a, *b = t.b;
  for (int64_t block = 0; block < t.blocks; ++block) {
    const int64_t steps = t.steps[block];
    sum_block(a, b, steps, t.rows > 16, sums);
    const auto* a_scales = reinterpret_cast<const float*>(a + kMr * steps);
    const auto* b_scales = reinterpret_cast<const float*>(b + kNr * steps);
    const __m512 right[2] = {_mm512_loadu_ps(b_scales), _mm512_loadu_ps(b_scales + 16)};
    for (int i = 0; i < t.rows; ++i) {
      const __m512 left = _mm512_set1_ps(a_scales[i]);
      for (int j = 0; j < 2; ++j) {
        float* c = t.c + i * kNr + 16 * j;
        const __m512 sum = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums + i * kNr + 16 * j));
        const __m512 from = block == 0 && t.first ? _mm512_setzero_ps() : _mm512_loadu_ps(c);
        _mm512_storeu_ps(c, _mm512_fmadd_ps(_mm512_mul_ps(sum, right[j]), left, from));
      }
    }
    a += kMr * (steps + 8);
    b += kNr * (steps + 4);
  }
}

}  // namespace

const DotInt8Kernel& dot8_amx() {
  static constexpr DotInt8Kernel kKernel = {.name = "amx",
                                            .mr = kMr,
                                            .nr = kNr,
                                            .k_unit = kK,
                                            .a_bytes = 1,
                                            .b_bytes = 1,
                                            .pack_a = pack8_tiles,
                                            .pack_b = pack8_groups<kNr, 0>,
                                            .multiply = dot8_amx_multiply,
                                            .store = gemm_bf16_avx512bf16,
                                            .enter = machine::amx_enter,
                                            .leave = machine::amx_leave};
  return kKernel;
}

}  // namespace ostro::kernels
