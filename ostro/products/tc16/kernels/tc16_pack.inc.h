// pack_tc16: packs operands of products by the rule of tensor cores (docs/spec/numerics.md, N23) for vectors.
// Included by the kernel files.
//
// A panel of W rows or columns holds, for each group of 16 k, values [16][W] f32, exponents [16][W] i16 and
// bases [W] i32. The base of a row is the largest exponent of its 16 numbers. A value is the number times
// 2^(-base - Down), so that its exponent is at most -Down; its exponent is that of the number below the base,
// kNoExponent for zero. A row that has a denormal, an infinity, a NaN or numbers further apart than
// kTc16Apart is for tc16_step alone: its base is kTc16Slow, its values are the numbers themselves, its
// exponents 0.
#pragma once

#include "ostro/products/tc16/kernels/tc16_step.inc.h"
#include "ostro/products/tile/gemm_pack.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kTc16Apart = 49;
constexpr int16_t kNoExponent = -16000;  // two of them still fit
constexpr int32_t kTc16Slow = -(1 << 20);

template <int W>
constexpr int kTc16GroupBytes = kTc16 * W * 6 + W * 4;

template <int W, int Down>
void pack_tc16_group(const uint16_t (*group)[W], char* out) {
  uint16_t largest[W], least[W], rare[W];
  for (int w = 0; w < W; ++w) largest[w] = 0, least[w] = 255, rare[w] = 0;
  for (int k = 0; k < kTc16; ++k)
    for (int w = 0; w < W; ++w) {
      const uint16_t field = group[k][w] >> 7 & 255, zero = (group[k][w] & 0x7fff) == 0 ? 1 : 0;
      const uint16_t low = zero != 0 ? 255 : field;
      largest[w] = field > largest[w] ? field : largest[w];
      least[w] = low < least[w] ? low : least[w];
      rare[w] = static_cast<uint16_t>(rare[w] | (field == 255) | (low == 0));
    }
  uint32_t* values = reinterpret_cast<uint32_t*>(out);
  auto* exponents = reinterpret_cast<int16_t*>(values + kTc16 * W);
  auto* bases = reinterpret_cast<int32_t*>(exponents + kTc16 * W);
  uint32_t down[W];
  for (int w = 0; w < W; ++w) {
    const bool slow = rare[w] != 0 || largest[w] > least[w] + kTc16Apart;
    bases[w] = slow ? kTc16Slow : largest[w] - 127;
    down[w] = slow ? 0 : (largest[w] - 127u + static_cast<uint32_t>(Down)) << 23;
  }
  for (int k = 0; k < kTc16; ++k)
    for (int w = 0; w < W; ++w) {
      const uint32_t word = static_cast<uint32_t>(group[k][w]) << 16;
      const bool zero = (word & 0x7fffffffu) == 0, slow = bases[w] == kTc16Slow;
      values[k * W + w] = zero ? word : word - down[w];
      const auto below = static_cast<int16_t>((group[k][w] >> 7 & 255) - largest[w]);
      exponents[k * W + w] = slow ? int16_t{0} : zero ? kNoExponent : below;
    }
}

// GemmKernel::pack_a and pack_b.
template <int W, int Down>
void pack_tc16(const PanelSource& s, void* out_bytes) {
  char* out = static_cast<char*>(out_bytes);
  for (int64_t k = 0; k < s.count; k += kGroup) {
    uint16_t group[kGroup][W];
    read_group<W>(s, k, group);
    for (int half = 0; half < kGroup && k + half < s.count; half += kTc16, out += kTc16GroupBytes<W>)
      pack_tc16_group<W, Down>(group + half, out);
  }
}

// The numbers of row w of a packed group, as tc16_step reads them.
template <int W, int Down>
void unpack_tc16(const char* packed, int w, uint32_t* out) {
  const auto* values = reinterpret_cast<const uint32_t*>(packed);
  const auto* bases = reinterpret_cast<const int32_t*>(packed + kTc16 * W * 6);
  const uint32_t down = bases[w] == kTc16Slow ? 0 : static_cast<uint32_t>(bases[w] + Down) << 23;
  for (int k = 0; k < kTc16; ++k) {
    const uint32_t word = values[k * W + w];
    out[k] = (word & 0x7fffffffu) == 0 ? word : word + down;
  }
}

}  // namespace
}  // namespace ostro::kernels
