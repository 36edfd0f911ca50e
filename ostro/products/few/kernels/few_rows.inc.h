// few_f32, few_bf16: the functions of few_kernel.h for one vector type. Included by few_*.cc alone.
//
// A tile is one unit of columns, two vectors, for R rows of A. Its chains stay in registers for a whole block
// of the contraction. Rows of A that do not fit into one tile make further tiles, which find the lines of B
// in the first cache.
#pragma once

#include <array>

#include "ostro/products/few/few_kernel.h"

namespace ostro::kernels {
namespace {

constexpr int kFewWords = kFewLine / 4;  // words of a line

// Prefetches `bytes` bytes at `at` of the rows of a later block. The compiler wants the cache as a constant.
[[gnu::always_inline]] inline void prefetch_rows(const FewAcross& b, int steps, int64_t at, int64_t bytes) {
  const auto each = [&]<int kCache>() __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int k = 0; k < steps; ++k)
      for (int64_t line = 0; line < bytes; line += kFewLine)
        __builtin_prefetch(static_cast<const char*>(b.ahead[k]) + at + line, 0, kCache);
  };
  if (b.near) return each.template operator()<3>();
  each.template operator()<2>();
}

// How many chunks before its use a line of a column is prefetched.
constexpr int64_t kChunksAhead = 20;

// Prefetches what follows chunk i by kChunksAhead, in these columns or the ones after them.
inline void prefetch_columns(const FewAlong& b, int64_t i, int unit) {
  const int64_t then = i + kChunksAhead;
  const void* const* columns = then < b.chunks ? b.w : b.ahead;
  const int64_t byte = (then < b.chunks ? then : then - b.chunks) * kFewLine;
  for (int j = 0; j < unit; ++j) __builtin_prefetch(static_cast<const char*>(columns[j]) + byte, 0, 2);
}

// V is a vector type with Turn::turn(w, byte, out), which makes rows of the words of V::kWidth columns from
// `byte` on: word i of column j becomes out[i * 2 * V::kWidth + j], for one line of each column.
template <class V, class Turn>
struct FewRowsOf {
  static constexpr int kUnit = 2 * V::kWidth;
  // Rows of a tile: what the registers hold, with the two vectors of B.
  static constexpr int kMostF32 = V::kWidth == 16 ? 8 : 4, kMostBf16 = V::kWidth == 16 ? 6 : 3;

  // f32: one chain for each output. `row(k)` is where the unit's elements of step k are.
  template <int R, class Row>
  static inline void f32_tile(const Row& row, int steps, const float* x, int64_t rows, float* c,
                              int64_t stride) {
    V sum[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r][0] = V::load(c + r * stride);
      sum[r][1] = V::load(c + r * stride + V::kWidth);
    }
    for (int k = 0; k < steps; ++k, x += rows) {
      const float* at = row(k);
      const V left = V::load(at), right = V::load(at + V::kWidth);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V a = V::set1(x[r]);
        sum[r][0] = V::fma(a, left, sum[r][0]);
        sum[r][1] = V::fma(a, right, sum[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r][0].store(c + r * stride);
      sum[r][1].store(c + r * stride + V::kWidth);
    }
  }

  // bf16, `steps` steps of a group: an even and an odd chain, which lie in `chains` between the parts of a
  // group, and after the last part c plus their sum (N7). `element(k, i)` is vector i of step k.
  template <int R, class Element>
  static inline void bf16_tile(const Element& element, int steps, bool first, bool last, const float* x,
                               int64_t rows, float* c, float* chains, int64_t stride) {
    V even[R][2], odd[R][2];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const float* from = chains + 2 * r * stride + i * V::kWidth;
        even[r][i] = first ? V::zero() : V::load(from);
        odd[r][i] = first ? V::zero() : V::load(from + stride);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < steps; k += 2, x += 2 * rows) {
      // One chain after the other: with three rows, AVX2 has registers for no more.
      const V e0 = element(k, 0), e1 = element(k, 1);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V a = V::set1(x[r]);
        even[r][0] = V::fma(a, e0, even[r][0]);
        even[r][1] = V::fma(a, e1, even[r][1]);
      }
      const V o0 = element(k + 1, 0), o1 = element(k + 1, 1);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const V a = V::set1(x[rows + r]);
        odd[r][0] = V::fma(a, o0, odd[r][0]);
        odd[r][1] = V::fma(a, o1, odd[r][1]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        float* to = c + r * stride + i * V::kWidth;
        float* chain = chains + 2 * r * stride + i * V::kWidth;
        if (last) {
          (V::load(to) + (even[r][i] + odd[r][i])).store(to);
        } else {
          even[r][i].store(chain);
          odd[r][i].store(chain + stride);
        }
      }
    }
  }

  // Calls tile<R>(first row) for all rows, in tiles of nearly equal height of at most kMost.
  template <int kMost, class Tile>
  static inline void for_rows(int rows, const Tile& tile) {
    for (int r = 0, tiles = (rows + kMost - 1) / kMost; r < rows; --tiles) {
      const int height = (rows - r + tiles - 1) / tiles;
      tile(r, height);
      r += height;
    }
  }

  template <class Row>
  static inline void f32_rows(const Row& row, int steps, const FewSums& s, float* c) {
    const auto* x = static_cast<const float*>(s.x);
    for_rows<kMostF32>(s.rows, [&](int r, int height) {
      const auto run = [&]<int R>() { f32_tile<R>(row, steps, x + r, s.rows, c + r * s.stride, s.stride); };
      with_height<kMostF32>(height, run);
    });
  }

  template <class Element>
  static inline void bf16_rows(const Element& element, int steps, bool first, bool last, const FewSums& s,
                               const float* x, float* c, float* chains) {
    for_rows<kMostBf16>(s.rows, [&](int r, int height) {
      const auto run = [&]<int R>() {
        bf16_tile<R>(element, steps, first, last, x + r, s.rows, c + r * s.stride, chains + 2 * r * s.stride,
                     s.stride);
      };
      with_height<kMostBf16>(height, run);
    });
  }

  // run.operator()<height>(), for 1 <= height <= kMost.
  template <int kMost, class Run>
  static inline void with_height(int height, const Run& run) {
    if (height == kMost) return run.template operator()<kMost>();
    if constexpr (kMost > 1) with_height<kMost - 1>(height, run);
  }

  static void f32_across(const FewAcross& b, const FewSums& s) {
    for (int64_t n = 0; n < b.columns; n += kUnit) {
      f32_rows([&](int k) { return static_cast<const float*>(b.w[k]) + n; }, b.steps, s, s.c + n);
      prefetch_rows(b, b.steps, n * 4, kUnit * 4);
    }
  }

  // The two numbers of steps are constants, so the compiler unrolls.
  static void bf16_across(const FewAcross& b, const FewSums& s) {
    if (b.steps == kFewSteps) return bf16_across_steps(b, kFewSteps, s);
    bf16_across_steps(b, kFewGroup, s);
  }

  [[gnu::always_inline]] static inline void bf16_across_steps(const FewAcross& b, const int steps,
                                                              const FewSums& s) {
    const auto* x = static_cast<const float*>(s.x) + b.begin * s.rows;
    const bool first = b.begin == 0, last = b.begin + steps == kFewGroup;
    for (int64_t n = 0; n < b.columns; n += kUnit) {
      bf16_rows([&](int k,
                    int i) { return V::load_bf16(static_cast<const uint16_t*>(b.w[k]) + n + i * V::kWidth); },
                steps, first, last, s, x, s.c + n, s.chains + n);
      if (n * 2 % kFewLine == 0) prefetch_rows(b, steps, n * 2, kFewLine);
    }
  }

  static void turn(const FewAlong& b, int64_t chunk, float* words) {
    Turn::turn(b.w, chunk * kFewLine, words);
    Turn::turn(b.w + V::kWidth, chunk * kFewLine, words + V::kWidth);
    prefetch_columns(b, chunk, kUnit);
  }

  static void f32_along(const FewAlong& b, const FewSums& s) {
    alignas(64) float words[kFewWords * kUnit];
    FewSums at = s;
    for (int64_t i = 0; i < b.chunks; ++i) {
      turn(b, i, words);
      f32_rows([&](int k) { return words + k * kUnit; }, b.steps, at, s.c);
      at.x = static_cast<const float*>(at.x) + int64_t{b.steps} * s.rows;
    }
  }

  static void bf16_along(const FewAlong& b, const FewSums& s) {
    alignas(64) float words[kFewWords * kUnit];
    const auto* x = static_cast<const float*>(s.x);
    for (int64_t i = 0; i < b.chunks; ++i, x += int64_t{kFewGroup} * s.rows) {
      turn(b, i, words);
      // Element 2j is the low half of word j, 2j + 1 the high one.
      bf16_rows(
          [&](int k, int half) {
            const float* word = words + k / 2 * kUnit + half * V::kWidth;
            return k % 2 == 0 ? Turn::low(word) : Turn::high(word);
          },
          kFewGroup, true, true, s, x, s.c, s.c);
    }
  }

  // Processors prefetch what follows in a panel by themselves; asking for it makes a Zen 3 slower.
  static void f32_panels(const FewPanels& b, const FewSums& s) {
    FewSums at = s;
    for (int64_t k = 0; k < b.steps; k += kFewGroup) {
      const auto steps = static_cast<int>(b.steps - k < kFewGroup ? b.steps - k : kFewGroup);
      for (int p = 0; p < b.panels; ++p) {
        const float* from = static_cast<const float*>(b.w[p]) + k * kUnit;
        f32_rows([&](int i) { return from + i * kUnit; }, steps, at, s.c + p * kUnit);
      }
      at.x = static_cast<const float*>(at.x) + int64_t{kFewGroup} * s.rows;
    }
  }

  // The even columns of a panel, then the odd ones: so they become f32 without being moved.
  static constexpr auto kPanelOrder = [] {
    std::array<uint8_t, kUnit> order{};
    for (int i = 0; i < kUnit; ++i) order[i] = static_cast<uint8_t>(i % V::kWidth * 2 + i / V::kWidth);
    return order;
  }();

  static void bf16_panels(const FewPanels& b, const FewSums& s) {
    const auto groups = [&](const auto& group) __attribute__((always_inline)) {
      const auto* x = static_cast<const float*>(s.x);
      for (int64_t k = 0; k < b.steps; k += kFewGroup, x += int64_t{kFewGroup} * s.rows)
        for (int p = 0; p < b.panels; ++p) {
          const uint16_t* from = static_cast<const uint16_t*>(b.w[p]) + k * kUnit;
          group(x, s.c + p * kUnit, [from](int i, int half) {
            const auto* words = reinterpret_cast<const float*>(from + i * kUnit);
            return half == 0 ? Turn::low(words) : Turn::high(words);
          });
        }
    };
    if (s.rows > kMostBf16)
      return groups([&](const float* x, float* c, const auto& element) {
        bf16_rows(element, kFewGroup, true, true, s, x, c, c);
      });
    // The height of the only tile is chosen once, for a group takes few instructions.
    with_height<kMostBf16>(s.rows, [&]<int R>() {
      groups([&](const float* x, float* c, const auto& element) __attribute__((always_inline)) {
        bf16_tile<R>(element, kFewGroup, true, true, x, s.rows, c, c, s.stride);
      });
    });
  }

  static constexpr FewKernel f32(int most, int panels) {
    return {kUnit,   most,    panels,     FewLeft::kSteps, FewLeft::kSteps,
            nullptr, nullptr, f32_across, f32_along,       f32_panels};
  }
  static constexpr FewKernel bf16(int most, int panels) {
    return {
        kUnit,       most,       panels,     FewLeft::kSteps, FewLeft::kSteps, nullptr, kPanelOrder.data(),
        bf16_across, bf16_along, bf16_panels};
  }
};

}  // namespace
}  // namespace ostro::kernels
