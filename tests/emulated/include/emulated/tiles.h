// AMX-TILE, AMX-BF16, AMX-INT8: eight tiles of up to 16 rows of 64 bytes a thread, and their products.
#pragma once

#include "emulated/bf16.h"

namespace ostro::emulated {

struct Tile {
  alignas(64) uint32_t word[16][16] = {};
  int rows = 0, row_bytes = 0;
};

struct Tiles {
  Tile tile[8];

  Tile& get(int t) {
    require(t >= 0 && t < 8 && tile[t].rows > 0,
            "a tile without LDTILECFG, or that its configuration leaves out");
    return tile[t];
  }
};

inline Tiles& tiles() {
  static thread_local Tiles t;
  return t;
}

}  // namespace ostro::emulated

OSTRO_EMULATED void _tile_loadconfig(const void* config) {
  using ostro::emulated::require;
  const auto* bytes = static_cast<const unsigned char*>(config);
  require(bytes[0] == 1 && bytes[1] == 0, "LDTILECFG of another palette or start row");
  for (int i = 2; i < 64; ++i)
    require(bytes[i] == 0 || (i >= 16 && i < 32) || (i >= 48 && i < 56), "LDTILECFG with reserved bytes set");
  ostro::emulated::Tiles& all = ostro::emulated::tiles();
  all = {};
  for (int t = 0; t < 8; ++t) {
    ostro::emulated::Tile& tile = all.tile[t];
    tile.row_bytes = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8;
    tile.rows = bytes[48 + t];
    require(tile.row_bytes <= 64 && tile.row_bytes % 4 == 0 && tile.rows <= 16,
            "LDTILECFG of a tile over 16 rows of 64 bytes");
    require((tile.row_bytes == 0) == (tile.rows == 0), "LDTILECFG of a tile with rows or columns alone");
  }
}

OSTRO_EMULATED void _tile_release() { ostro::emulated::tiles() = {}; }

OSTRO_EMULATED void _tile_zero(int t) {
  for (auto& row : ostro::emulated::tiles().get(t).word) std::memset(row, 0, sizeof(row));
}

OSTRO_EMULATED void _tile_loadd(int t, const void* from, long long stride) {
  ostro::emulated::Tile& tile = ostro::emulated::tiles().get(t);
  _tile_zero(t);
  for (int r = 0; r < tile.rows; ++r)
    std::memcpy(tile.word[r], static_cast<const char*>(from) + r * stride,
                static_cast<size_t>(tile.row_bytes));
}

OSTRO_EMULATED void _tile_stored(int t, void* to, long long stride) {
  const ostro::emulated::Tile& tile = ostro::emulated::tiles().get(t);
  for (int r = 0; r < tile.rows; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride, tile.word[r], static_cast<size_t>(tile.row_bytes));
}

// c += a b: for each output the lower halves of all words are summed in order from +0, the upper halves
// likewise, each step fused; the two sums are added to each other, then to c.
OSTRO_EMULATED void _tile_dpbf16ps(int c, int a, int b) {
  using namespace ostro::emulated;
  Tile &to = tiles().get(c), &left = tiles().get(a), &right = tiles().get(b);
  const int words = left.row_bytes / 4;
  require(c != a && c != b && a != b, "TDPBF16PS of one tile twice");
  require(to.rows == left.rows && to.row_bytes == right.row_bytes && words == right.rows,
          "TDPBF16PS of tiles that do not fit");
  require_environment();
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int m = 0; m < to.rows; ++m) {
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
    for (int k = 0; k < words; ++k) {
      const uint32_t pair = left.word[m][k];
      const __m512i row = _mm512_load_si512(right.word[k]);
      even = _mm512_fmadd_ps(_mm512_set1_ps(low_bf16(pair)), _mm512_castsi512_ps(_mm512_slli_epi32(row, 16)),
                             even);
      odd = _mm512_fmadd_ps(_mm512_set1_ps(high_bf16(pair)),
                            _mm512_castsi512_ps(_mm512_and_si512(row, upper)), odd);
    }
    const __m512 before = _mm512_castsi512_ps(_mm512_load_si512(to.word[m]));
    _mm512_store_si512(to.word[m], _mm512_castps_si512(_mm512_add_ps(before, _mm512_add_ps(even, odd))));
  }
}

// c += a b on signed bytes, four of a word together; sums modulo 2^32.
OSTRO_EMULATED void _tile_dpbssd(int c, int a, int b) {
  using namespace ostro::emulated;
  Tile &to = tiles().get(c), &left = tiles().get(a), &right = tiles().get(b);
  const int words = left.row_bytes / 4;
  require(c != a && c != b && a != b, "TDPBSSD of one tile twice");
  require(to.rows == left.rows && to.row_bytes == right.row_bytes && words == right.rows,
          "TDPBSSD of tiles that do not fit");
  const auto byte = [](uint32_t word, int i) {
    return static_cast<int32_t>(static_cast<int8_t>(word >> (8 * i) & 0xff));
  };
  for (int m = 0; m < to.rows; ++m)
    for (int k = 0; k < words; ++k)
      for (int n = 0; n < to.row_bytes / 4; ++n)
        for (int i = 0; i < 4; ++i)
          to.word[m][n] += static_cast<uint32_t>(byte(left.word[m][k], i) * byte(right.word[k][n], i));
}
