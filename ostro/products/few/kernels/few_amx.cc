// Products of few rows in bf16, on AMX: tiles for B in panels. All else is the code of AVX-512, since
// VDPBF16PS is slow on processors with AMX.
//
// One TDPBF16PS is a group of N7 for up to 16 rows and 16 columns (machine/vector/amx_tiles.inc.h), whose
// words hold steps 2i and 2i + 1. Up to 32 rows of A go through a panel in a pass.
#include "ostro/machine/vector/amx_tiles.inc.h"
#include "ostro/machine/vector/pair_rows_avx512.inc.h"
#include "ostro/products/few/few_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int kTileUnit = 32, kTileRows = 16, kPassRows = 2 * kTileRows;
constexpr int kGroupWords = kFewGroup / 2;
// A group of a panel: bf16, and words of two.
constexpr int64_t kGroupElements = int64_t{kFewGroup} * kTileUnit, kTileWords = kGroupElements / 2;
// Bytes between what is read of a panel and what is prefetched.
constexpr int64_t kAhead = 4096;
// Groups whose words are made before the first of them is multiplied. A tile is loaded slowly from lines that
// are still on their way from the store buffer to the cache.
constexpr int64_t kGroupsAhead = 2;
// Groups of a panel whose words are kept for further rows: 128 KiB, which stay in the second cache.
constexpr int64_t kBlockGroups = 64;

// Of the tiles of a pass with so many rows: 0, 1 and 4 have its first kTileRows, 2, 3 and 5 the others. A
// table, since gcc's tile_loadconfig does not declare that it reads all of a configuration.
struct Configs {
  machine::AmxConfig of_rows[kPassRows + 1];

  constexpr Configs() {
    for (int rows = 0; rows <= kPassRows; ++rows) {
      uint8_t* out = of_rows[rows].rows;
      out[0] = out[1] = out[4] = static_cast<uint8_t>(rows < kTileRows ? rows : kTileRows);
      out[2] = out[3] = out[5] = static_cast<uint8_t>(rows > kTileRows ? rows - kTileRows : kTileRows);
    }
  }
};
constexpr Configs kConfigs;

// A group of a panel as words [step / 2][column].
[[gnu::always_inline]] inline void interleave(const uint16_t* from, uint32_t* to) {
#pragma GCC unroll 4
  for (int i = 0; i < kGroupWords; ++i, from += 2 * kTileUnit, to += kTileUnit) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(from + kTileUnit) + kAhead, _MM_HINT_T0);
    machine::store_paired(_mm512_loadu_si512(from), _mm512_loadu_si512(from + kTileUnit), to);
  }
}

// Words that are made of a panel while they are multiplied. kKept: all of them stay; otherwise they go round.
template <bool kKept>
struct NewWords {
  const uint16_t* from;
  int64_t groups;
  uint32_t* words;

  static constexpr int64_t kRing = kGroupsAhead + 1;
  [[gnu::always_inline]] uint32_t* place(int64_t g) const {
    return words + (kKept ? g : g % kRing) * kTileWords;
  }
  [[gnu::always_inline]] void make(int64_t g) const {
    if (g < groups) interleave(from + g * kGroupElements, place(g));
  }
  [[gnu::always_inline]] void begin() const {
    for (int64_t g = 0; g < kGroupsAhead; ++g) make(g);
  }
  [[gnu::always_inline]] const uint32_t* at(int64_t g) const {
    make(g + kGroupsAhead);
    return place(g);
  }
};

// Words that were kept. With each group, the group at the same place of what is read next is prefetched.
struct KeptWords {
  const uint32_t* words;
  const uint16_t* next;

  [[gnu::always_inline]] void begin() const {}
  [[gnu::always_inline]] const uint32_t* at(int64_t g) const {
    for (int64_t i = 0; i < kGroupElements; i += kFewLine / 2)
      _mm_prefetch(reinterpret_cast<const char*>(next + g * kGroupElements + i), _MM_HINT_T1);
    return words + g * kTileWords;
  }
};

// The sums of up to kPassRows rows and of one panel go on over its groups. kHigh: more than kTileRows rows.
template <bool kHigh, class Words>
void tile_pass(const Words& words, int64_t groups, const uint32_t* x, int64_t x_group, float* c,
               int64_t stride) {
  float* high = c + kTileRows * stride;
  machine::amx_before_loads();
  _tile_loadd(0, c, stride * 4);
  _tile_loadd(1, c + 16, stride * 4);
  if constexpr (kHigh) {
    _tile_loadd(2, high, stride * 4);
    _tile_loadd(3, high + 16, stride * 4);
  }
  words.begin();
  for (int64_t g = 0; g < groups; ++g, x += x_group) {
    const uint32_t* b = words.at(g);
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

template <class Words>
void rows_pass(int rows, const Words& words, int64_t groups, const uint32_t* x, int64_t x_group, float* c,
               int64_t stride) {
  if (rows > kTileRows)
    tile_pass<true>(words, groups, x, x_group, c, stride);
  else
    tile_pass<false>(words, groups, x, x_group, c, stride);
}

// A panel with more than kPassRows rows, block by block: words are made for the first kPassRows, and kept for
// the others. Both passes have a configuration of their own, unless the second is as high as the first.
void two_passes(const uint16_t* from, int64_t groups, const FewSums& s, float* c) {
  static_assert(kFewRows <= 2 * kPassRows);
  alignas(64) uint32_t words[kBlockGroups * kTileWords];
  const int rest = s.rows - kPassRows;
  const auto* x = static_cast<const uint32_t*>(s.x);
  const int64_t x_group = int64_t{kGroupWords} * s.rows;
  for (int64_t g = 0; g < groups; g += kBlockGroups) {
    const int64_t count = groups - g < kBlockGroups ? groups - g : kBlockGroups;
    const uint16_t* block = from + g * kGroupElements;
    if (rest < kPassRows) _tile_loadconfig(&kConfigs.of_rows[kPassRows]);
    tile_pass<true>(NewWords<true>{block, count, words}, count, x, x_group, c, s.stride);
    if (rest < kPassRows) _tile_loadconfig(&kConfigs.of_rows[rest]);
    rows_pass(rest, KeptWords{words, block + count * kGroupElements}, count, x + kPassRows * kGroupWords,
              x_group, c + kPassRows * s.stride, s.stride);
    x += count * x_group;
  }
}

void tile_panels(const FewPanels& b, const FewSums& s) {
  alignas(64) uint32_t ring[NewWords<false>::kRing * kTileWords];
  const int64_t groups = b.steps / kFewGroup, x_group = int64_t{kGroupWords} * s.rows;
  _tile_loadconfig(&kConfigs.of_rows[s.rows < kPassRows ? s.rows : kPassRows]);
  for (int p = 0; p < b.panels; ++p) {
    const auto* from = static_cast<const uint16_t*>(b.w[p]);
    float* c = s.c + p * kTileUnit;
    if (s.rows > kPassRows)
      two_passes(from, groups, s, c);
    else
      rows_pass(s.rows, NewWords<false>{from, groups, ring}, groups, static_cast<const uint32_t*>(s.x),
                x_group, c, s.stride);
  }
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
