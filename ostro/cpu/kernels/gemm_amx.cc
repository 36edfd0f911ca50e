// bf16 tiles on AMX: 32 x 32 outputs in four tile registers, one TDPBF16PS per 16 x 16 outputs and group of
// 32 k. Its arithmetic is N7 itself; MXCSR does not reach it.
#include "ostro/cpu/kernels/gemm_pack_avx512.inc.h"
#include "ostro/cpu/kernels/gemm_store_avx512bf16.inc.h"

namespace ostro::cpu {
namespace {

constexpr int kMr = 32, kNr = 32;
constexpr int kTileWords = 16 * 16;

void enter() {
  // Palette 1; all eight tiles of 16 rows by 64 bytes.
  struct alignas(64) Config {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Config kConfig;
  _tile_loadconfig(&kConfig);
}

void leave() { _tile_release(); }

void multiply_16(int64_t groups, const uint32_t* a, const uint32_t* b, float* c, int64_t ldc, bool first) {
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
  } else {
    _tile_loadd(0, c, ldc * 4);
    _tile_loadd(1, c + 16, ldc * 4);
  }
  for (int64_t g = 0; g < groups; ++g, a += 2 * kTileWords, b += 2 * kTileWords) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 4 * kNr);
    _tile_loadd(7, b + 16, 4 * kNr);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, ldc * 4);
  _tile_stored(1, c + 16, ldc * 4);
}

void multiply_32(int64_t groups, const uint32_t* a, const uint32_t* b, float* c, int64_t ldc, bool first) {
  float* low = c + 16 * ldc;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, c, ldc * 4);
    _tile_loadd(1, c + 16, ldc * 4);
    _tile_loadd(2, low, ldc * 4);
    _tile_loadd(3, low + 16, ldc * 4);
  }
  for (int64_t g = 0; g < groups; ++g, a += 2 * kTileWords, b += 2 * kTileWords) {
    _tile_loadd(6, b, 4 * kNr);
    _tile_loadd(4, a, 64);
    _tile_loadd(7, b + 16, 4 * kNr);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + kTileWords, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, ldc * 4);
  _tile_stored(1, c + 16, ldc * 4);
  _tile_stored(2, low, ldc * 4);
  _tile_stored(3, low + 16, ldc * 4);
}

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  const auto tile = rows <= 16 ? multiply_16 : multiply_32;
  tile(k / kGroup, static_cast<const uint32_t*>(a), static_cast<const uint32_t*>(b), c, ldc, first);
}

}  // namespace

const GemmKernel& gemm_bf16_amx() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 2,
                                         kNr * 2,
                                         pack_groups<2 * kTileWords, pack_group_tiles_avx512<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs_avx512<kNr>>,
                                         bf16_multiply,
                                         16,
                                         round_row_avx512bf16,
                                         store_f32_avx512,
                                         store_bf16_avx512,
                                         enter,
                                         leave,
                                         256,
                                         256};
  return kKernel;
}

}  // namespace ostro::cpu
