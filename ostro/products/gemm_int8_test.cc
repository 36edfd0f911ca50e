// Products with an int8 matrix: the bits of dequantising first (numerics.md N1) and then N6, N7 and N8.
#include <doctest/doctest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "ostro/products/gemm.h"
#include "ostro/products/gemm_reference.h"
#include "ostro/products/kernels/int8_kernel.h"

namespace ostro::kernels {
namespace {

struct Int8FpEnvironment {
  Int8FpEnvironment() { _mm_setcsr(0x9fc0); }
  ~Int8FpEnvironment() { _mm_setcsr(before); }
  unsigned before = _mm_getcsr();
};

uint64_t mixed(uint64_t i) {
  i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  i = (i ^ i >> 27) * 0x94d049bb133111ebu;
  return i ^ i >> 31;
}

// 1 + m / 128, times 2^exponent.
float scale_of(int m, int exponent) { return std::ldexp(1.0f + static_cast<float>(m) / 128.0f, exponent); }

enum class ScaleKind { kUsual, kZero, kNegative, kTiny, kHuge, kNotFinite };

float some_scale(uint64_t random, ScaleKind kind) {
  const float usual = scale_of(static_cast<int>(random & 127), -9 - static_cast<int>(random >> 8 & 3));
  if (random >> 16 & 1) return usual;
  switch (kind) {
    case ScaleKind::kUsual: return usual;
    case ScaleKind::kZero: return 0.0f;
    case ScaleKind::kNegative: return -usual;
    case ScaleKind::kTiny: return scale_of(static_cast<int>(random & 127), -126);
    case ScaleKind::kHuge: return scale_of(static_cast<int>(random & 127), 125);
    case ScaleKind::kNotFinite:
      return random >> 17 & 1 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  }
  return usual;
}

uint16_t high_half(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

struct Int8Product {
  int64_t m, k, n, groups;
  bool bf16, rounded;
  ScaleKind scales = ScaleKind::kUsual;
  int64_t row_gap = 0;                     // elements between rows of B that are not B's
  std::vector<int64_t> segment_ends = {};  // leaves of the contraction
};

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

// How many elements of C differ from the definition.
int64_t differences(const Int8Product& p, machine::Isa isa, int threads) {
  const Int8FpEnvironment environment;
  const int64_t ld = p.n + p.row_gap;
  std::vector<int8_t> w(static_cast<size_t>(p.k * ld));
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<int8_t>(mixed(i));
  std::vector<float> a(static_cast<size_t>(p.m * p.k)), s(static_cast<size_t>(p.groups * p.n));
  for (size_t i = 0; i < a.size(); ++i) {
    const uint64_t r = mixed(i + 1000000);
    a[i] = reference::widen(high_half(scale_of(static_cast<int>(r & 127), static_cast<int>(r >> 8 & 3)))) *
           (r >> 20 & 1 ? -1.0f : 1.0f);
    if ((r >> 24 & 15) == 0) a[i] = r >> 30 & 1 ? -0.0f : std::ldexp(-1.0f, -70);  // products that underflow
  }
  for (size_t i = 0; i < s.size(); ++i) s[i] = some_scale(mixed(i + 2000000), p.scales);
  std::vector<uint16_t> a16, s16;
  for (const float x : a) a16.push_back(high_half(x));
  for (const float x : s) s16.push_back(high_half(x));

  GemmSpec spec;
  spec.in = p.bf16 ? GemmType::kBf16 : GemmType::kF32;
  spec.out = p.rounded ? GemmType::kBf16 : GemmType::kF32;
  spec.int8_b = true;
  for (int64_t i = 0; i < p.m; ++i) spec.a_row.push_back(i * p.k), spec.c_row.push_back(i * p.n);
  for (int64_t i = 0; i < p.k; ++i) {
    spec.a_col.push_back(i);
    spec.b_row.push_back(i * ld);
    spec.s_row.push_back(i / (p.k / p.groups) * p.n);
  }
  for (int64_t i = 0; i < p.n; ++i) spec.b_col.push_back(i), spec.c_col.push_back(i), spec.s_col.push_back(i);
  spec.segment_ends = p.segment_ends;
  machine::ThreadPool pool(threads);
  std::vector<float> c(static_cast<size_t>(p.m * p.n));
  std::vector<uint16_t> c16(c.size());
  Gemm(spec, isa).run(pool, p.bf16 ? static_cast<const void*>(a16.data()) : a.data(),
                      GemmB(w.data(), p.bf16 ? static_cast<const void*>(s16.data()) : s.data()),
                      p.rounded ? static_cast<void*>(c16.data()) : c.data());

  int64_t wrong = 0;
  std::vector<int64_t> ends = p.segment_ends;
  if (ends.empty()) ends = {p.k};
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      const auto weight = [&](int64_t k) {
        return static_cast<float>(w[static_cast<size_t>(k * ld + j)]) *
               s[static_cast<size_t>(k / (p.k / p.groups) * p.n + j)];
      };
      std::vector<float> partials;
      for (size_t e = 0; e < ends.size(); ++e) {
        const int64_t begin = e == 0 ? 0 : ends[e - 1];
        partials.push_back(
            p.bf16 ? reference::dot_bf16([&](int64_t k) { return a16[static_cast<size_t>(i * p.k + k)]; },
                                         [&](int64_t k) { return reference::round_bf16(weight(k)); }, begin,
                                         ends[e])
                   : reference::dot_f32([&](int64_t k) { return a[static_cast<size_t>(i * p.k + k)]; },
                                        weight, begin, ends[e]));
      }
      const float expected = reference::tree(partials.data(), static_cast<int64_t>(partials.size()));
      const auto at = static_cast<size_t>(i * p.n + j);
      wrong += p.rounded
                   ? !same_bits(reference::widen(c16[at]), reference::widen(reference::round_bf16(expected)))
                   : !same_bits(c[at], expected);
    }
  return wrong;
}

TEST_CASE("products with int8 matrices have the bits of dequantising first") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool bf16 : {true, false})
      for (const int64_t m : {1, 2, 3, 8, 9, 20})
        for (const int64_t k : {1, 7, 32, 43, 96})
          for (const int64_t n : {1, 5, 16, 33, 150}) {
            const Int8Product p{
                .m = m, .k = k, .n = n, .groups = 1, .bf16 = bf16, .rounded = bf16 && n % 2 == 1};
            CHECK_MESSAGE(differences(p, isa, 2) == 0, machine::isa_name(isa), " ", m, " x ", k, " x ", n,
                          " bf16 ", bf16);
          }
}

TEST_CASE("groups of rows have scales of their own, also where one ends inside a group of N7") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool bf16 : {true, false})
      for (const int64_t m : {1, 4, 11})
        for (const int64_t groups : {2, 8}) {
          const Int8Product p{.m = m,
                              .k = 86 * groups,
                              .n = 70,
                              .groups = groups,
                              .bf16 = bf16,
                              .rounded = false,
                              .row_gap = 9};
          CHECK_MESSAGE(differences(p, isa, 3) == 0, machine::isa_name(isa), " ", m, " rows, ", groups,
                        " groups");
        }
}

TEST_CASE("every kind of scale has the bits that N1 gives it") {
  for (const machine::Isa isa : machine::available_isas())
    for (const bool bf16 : {true, false})
      for (const ScaleKind kind : {ScaleKind::kZero, ScaleKind::kNegative, ScaleKind::kTiny, ScaleKind::kHuge,
                                   ScaleKind::kNotFinite})
        for (const int64_t m : {1, 3, 10}) {
          const Int8Product p{
              .m = m, .k = 70, .n = 80, .groups = 2, .bf16 = bf16, .rounded = false, .scales = kind};
          CHECK_MESSAGE(differences(p, isa, 1) == 0, machine::isa_name(isa), " kind ", static_cast<int>(kind),
                        " ", m);
        }
}

TEST_CASE("leaves of the contraction and wide matrices") {
  for (const machine::Isa isa : machine::available_isas()) {
    Int8Product p{.m = 2, .k = 100, .n = 40, .groups = 4, .bf16 = true, .rounded = false};
    p.segment_ends = {40, 80, 100};
    CHECK(differences(p, isa, 2) == 0);
    CHECK(differences({.m = 1, .k = 40, .n = 5000, .groups = 1, .bf16 = true, .rounded = true}, isa, 3) == 0);
  }
}

// kInt8Larger: all whole numbers of 8 bits, all significands of a bf16 scale.
TEST_CASE("two sums round the product of an int8 and a bf16 to bf16") {
  const Int8FpEnvironment environment;
  int64_t wrong = 0, rounded = 0;
  for (int m = 0; m < 128; ++m)
    for (int q = -128; q < 128; ++q) {
      const float s = scale_of(m, -8), x = static_cast<float>(q), product = x * s, c = x * (s * kInt8Larger);
      const float expected = reference::widen(reference::round_bf16(product));
      wrong += !same_bits(c + std::fma(x, s, -c), expected);
      rounded += expected != product;
    }
  CHECK(wrong == 0);
  CHECK(rounded > 10000);  // else it would show nothing
  // Not so for a zero with a sign: such scales are not usual.
  CHECK_FALSE(int8_scale_is_usual(-1.0f));
  CHECK_FALSE(int8_scale_is_usual(0.0f));
}

}  // namespace
}  // namespace ostro::kernels
