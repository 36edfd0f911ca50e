// Products of few rows in bf16, on AMX: tiles for B in panels. All else is the code of AVX-512, since
// VDPBF16PS is slow on processors with AMX.
//
// One TDPBF16PS is a group of N7 for up to 16 rows and 16 columns (machine/vector/amx_tiles.inc.h), whose
// words hold steps 2i and 2i + 1. Tiles have as many rows as A has.
#include "ostro/machine/vector/amx_tiles.inc.h"
#include "ostro/machine/vector/pair_rows_avx512.inc.h"
#include "ostro/products/few/few_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int kTileUnit = 32, kTileRows = 16;
constexpr int kGroupWords = kFewGroup / 2;
// Bytes between what is read of a panel and what is prefetched.
constexpr int64_t kAhead = 4096;
// Groups whose words are made before the first of them is multiplied. A tile is loaded slowly from lines that
// are still on their way from the store buffer to the cache.
constexpr int64_t kGroupsAhead = 2;

machine::AmxConfig config_of(int rows) {
  machine::AmxConfig out;
  const auto low = static_cast<uint8_t>(rows < kTileRows ? rows : kTileRows);
  const auto high = static_cast<uint8_t>(rows > kTileRows ? rows - kTileRows : kTileRows);
  out.rows[0] = out.rows[1] = out.rows[4] = low;
  out.rows[2] = out.rows[3] = out.rows[5] = high;
  return out;
}

// A group of a panel as words [step / 2][column].
[[gnu::always_inline]] inline void interleave(const uint16_t* from, uint32_t* to) {
#pragma GCC unroll 4
  for (int i = 0; i < kGroupWords; ++i, from += 2 * kTileUnit, to += kTileUnit) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(from + kTileUnit) + kAhead, _MM_HINT_T0);
    machine::store_paired(_mm512_loadu_si512(from), _mm512_loadu_si512(from + kTileUnit), to);
  }
}

// One panel, kHigh: of more than kTileRows rows. The words of later groups are made between products.
template <bool kHigh>
void tile_panel(const uint16_t* from, int64_t groups, const uint32_t* x, int64_t x_group, float* c,
                int64_t stride) {
  alignas(64) uint32_t words[kGroupsAhead + 1][kGroupWords * kTileUnit];
  float* high = c + kTileRows * stride;
  machine::amx_before_loads();
  _tile_loadd(0, c, stride * 4);
  _tile_loadd(1, c + 16, stride * 4);
  if constexpr (kHigh) {
    _tile_loadd(2, high, stride * 4);
    _tile_loadd(3, high + 16, stride * 4);
  }
  const auto make_words = [&](int64_t g) __attribute__((always_inline)) {
    if (g < groups) interleave(from + g * kFewGroup * kTileUnit, words[g % (kGroupsAhead + 1)]);
  };
  for (int64_t g = 0; g < kGroupsAhead; ++g) make_words(g);
  for (int64_t g = 0; g < groups; ++g, x += x_group) {
    make_words(g + kGroupsAhead);
    const uint32_t* b = words[g % (kGroupsAhead + 1)];
    machine::amx_before_loads();
    _tile_loadd(4, x, 64);
    _tile_loadd(6, b, 4 * kTileUnit);
    _tile_loadd(7, b + 16, 4 * kTileUnit);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kHigh) {
      _tile_loadd(5, x + kTileRows * kGroupWords, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, stride * 4);
  _tile_stored(1, c + 16, stride * 4);
  if constexpr (kHigh) {
    _tile_stored(2, high, stride * 4);
    _tile_stored(3, high + 16, stride * 4);
  }
}

void tile_panels(const FewPanels& b, const FewSums& s) {
  const machine::AmxConfig config = config_of(s.rows);
  _tile_loadconfig(&config);
  const auto panel = s.rows <= kTileRows ? tile_panel<false> : tile_panel<true>;
  for (int p = 0; p < b.panels; ++p)
    panel(static_cast<const uint16_t*>(b.w[p]), b.steps / kFewGroup, static_cast<const uint32_t*>(s.x),
          int64_t{kGroupWords} * s.rows, s.c + p * kTileUnit, s.stride);
  machine::amx_leave();
}

}  // namespace

const FewKernel& few_bf16_amx() {
  static const FewKernel kKernel = [] {
    FewKernel out = few_bf16_avx512();
    out.panel_rows = kFewRows;
    out.panel_left = FewLeft::kGroups;
    out.panel_column_of = nullptr;
    out.panels = tile_panels;
    return out;
  }();
  return kKernel;
}

}  // namespace ostro::kernels
