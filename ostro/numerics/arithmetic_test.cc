// Casts, sums, dots, tree and leaves against the text of docs/spec/numerics.md, with negative controls.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/casts.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/leaves.h"
#include "ostro/numerics/sums.h"
#include "ostro/numerics/threefry.h"

namespace ostro::numerics {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t x) { return std::bit_cast<float>(x); }

// Values whose sum depends on the order of additions.
std::vector<float> rough_values(uint64_t seed, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n));
  const Key key = key_from_seed(seed);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = random_normal(key, i) * std::ldexp(1.0f, static_cast<int>(random_bits(key, i) % 9u));
  }
  return out;
}

// Round to nearest even on the high half by comparing the two neighbours, not by the add-and-carry trick.
uint16_t bf16_by_distance(uint32_t bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t low = bits & 0xffffu, high = bits >> 16;
  const bool up = low > 0x8000u || (low == 0x8000u && (high & 1u) != 0);
  return static_cast<uint16_t>(high + (up ? 1u : 0u));
}

TEST_CASE("floating-point environment: guard sets, restores and notices") {
  const uint32_t before = _mm_getcsr();
  {
    HostArithmetic guard;
    CHECK(fp_env_is_set());
    volatile float tiny = 0x1p-126f;
    CHECK(bits_of(tiny * 0.5f) == 0);  // flushed
    volatile float denormal = from_bits(1);
    CHECK(denormal + 0.0f == 0.0f);
    _mm_setcsr(0x1f80);
    CHECK_FALSE(fp_env_is_set());
    CHECK(bits_of(tiny * 0.5f) == 0x00400000u);  // not flushed: the control
    set_fp_env();
  }
  CHECK(_mm_getcsr() == before);
}

TEST_CASE("bf16: cast table") {
  const struct {
    uint32_t in;
    uint16_t out;
  } cases[] = {{0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x00000001, 0x0000}, {0x807fffff, 0x8000},
               {0x007fffff, 0x0000}, {0x00800000, 0x0080}, {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80},
               {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
               {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffbf1234, 0xffff}, {0x7fc00000, 0x7fc0}};
  for (const auto& c : cases) CHECK(to_bf16(from_bits(c.in)).bits == c.out);
  for (uint32_t b = 0; b < 0x10000; ++b) {  // every bf16 survives the way through f32, unless denormal or NaN
    const Bf16 x{static_cast<uint16_t>(b)};
    if ((b & 0x7f80u) != 0 && (b & 0x7fffu) <= 0x7f80u) CHECK(to_bf16(to_f32(x)).bits == b);
  }
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += 65521) {
    CHECK(to_bf16(from_bits(static_cast<uint32_t>(b))).bits == bf16_by_distance(static_cast<uint32_t>(b)));
  }
}

// Every 499th input from a drawn one on; every 17th in a full run, all 2^32 in an exhaustive one.
TEST_CASE("slow: bf16 cast of every exponent") {
  const uint64_t step = sized<uint64_t>(499, 17, 1), first = test_seed() % step;
  MESSAGE("inputs ", first, " + n * ", step);
  uint64_t wrong = 0;
  for (uint64_t b = first; b < (uint64_t{1} << 32); b += step) {
    wrong += to_bf16(from_bits(static_cast<uint32_t>(b))).bits != bf16_by_distance(static_cast<uint32_t>(b));
  }
  CHECK(wrong == 0);
}

TEST_CASE("casts to integers: towards zero, saturating, NaN is 0") {
  CHECK(float_to_int<int32_t>(-1.9f) == -1);
  CHECK(float_to_int<int32_t>(0x1p31f) == std::numeric_limits<int32_t>::max());
  CHECK(float_to_int<int32_t>(-0x1p31f) == std::numeric_limits<int32_t>::min());
  CHECK(float_to_int<int32_t>(-INFINITY) == std::numeric_limits<int32_t>::min());
  CHECK(float_to_int<int32_t>(std::nanf("")) == 0);
  CHECK(float_to_int<int32_t>(2147483647.5) == std::numeric_limits<int32_t>::max());
  CHECK(float_to_int<uint32_t>(4294967040.0f) == 4294967040u);
  CHECK(float_to_int<uint32_t>(-0.5f) == 0u);
  CHECK(float_to_int<uint32_t>(-7.0f) == 0u);
  CHECK(float_to_int<int64_t>(0x1p63) == std::numeric_limits<int64_t>::max());
  CHECK(float_to_int<int64_t>(-0x1p62f) == -(int64_t{1} << 62));
}

TEST_CASE("striped sum: the 64 lanes and their combination, written out") {
  HostArithmetic guard;
  int differs_from_serial = 0;
  for (int64_t n : {0, 1, 2, 63, 64, 65, 127, 128, 200, 1000, 4096}) {
    const std::vector<float> x = rough_values(static_cast<uint64_t>(n), n);
    float lane[64] = {};
    for (int64_t start = 0; start < n; start += 64) {
      for (int64_t i = 0; i < 64; ++i) lane[i] += start + i < n ? x[static_cast<size_t>(start + i)] : 0.0f;
    }
    float v[16];
    for (int i = 0; i < 16; ++i) v[i] = (lane[i] + lane[i + 16]) + (lane[i + 32] + lane[i + 48]);
    const auto pair = [&](int i) { return v[i] + v[i + 8]; };
    const auto four = [&](int i) { return pair(i) + pair(i + 4); };
    const float expected = (four(0) + four(2)) + (four(1) + four(3));
    CHECK(bits_of(striped_sum<float>(std::span<const float>(x))) == bits_of(expected));
    differs_from_serial +=
        striped_sum<float>(std::span<const float>(x)) != serial_sum<float>(std::span<const float>(x));
  }
  CHECK(differs_from_serial >= 4);  // the data would show another order
  const std::vector<float> x = rough_values(7, 512);
  const auto strided = striped_sum<double>(128, [&](int64_t r) { return x[static_cast<size_t>(4 * r)]; });
  std::vector<double> picked;
  for (size_t r = 0; r < 128; ++r) picked.push_back(x[4 * r]);
  CHECK(strided == striped_sum<double>(std::span<const double>(picked)));
  const std::vector<float> minus_zero = {-0.0f};
  CHECK(bits_of(striped_sum<float>(std::span<const float>(minus_zero))) == 0);  // from +0
  CHECK(bits_of(serial_sum<float>(std::span<const float>(minus_zero))) == 0);
}

TEST_CASE("tree: left part is the largest power of two below the count; the fold gives the same") {
  const auto join = [](std::string a, std::string b) { return "(" + a + b + ")"; };
  const auto letter = [](int64_t i) { return std::string(1, static_cast<char>('a' + i)); };
  CHECK(tree_reduce(1, letter, join) == "a");
  CHECK(tree_reduce(3, letter, join) == "((ab)c)");
  CHECK(tree_reduce(4, letter, join) == "((ab)(cd))");
  CHECK(tree_reduce(5, letter, join) == "(((ab)(cd))e)");
  CHECK(tree_reduce(7, letter, join) == "(((ab)(cd))((ef)g))");
  for (int64_t n = 1; n <= 26; ++n) {
    TreeFold<std::string, decltype(join)> fold(join);
    for (int64_t i = 0; i < n; ++i) {
      fold.push(letter(i));
      CHECK(fold.live() <= static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(fold.count()))));
    }
    CHECK(fold.finish() == tree_reduce(n, letter, join));
    CHECK(fold.count() == 0);
  }
  HostArithmetic guard;
  int differs_from_chain = 0;
  for (int64_t n = 1; n < 300; ++n) {
    const std::vector<float> x = rough_values(3, n);
    const auto add = [](float a, float b) { return a + b; };
    TreeFold<float, decltype(add)> fold(add);
    for (float v : x) fold.push(v);
    const float root = tree_sum<float>(x);
    CHECK(bits_of(fold.finish()) == bits_of(root));
    differs_from_chain += root != serial_sum<float>(std::span<const float>(x));
  }
  CHECK(differs_from_chain > 100);
  CHECK(tree_sum<double>({}) == 0.0);
}

// N7 with another group length, or one chain in natural order: other functions.
float grouped_dot(const std::vector<Bf16>& a, const std::vector<Bf16>& b, size_t group) {
  float c = 0;
  for (size_t g = 0; g < a.size(); g += group) {
    float e = 0, o = 0;
    for (size_t k = g; k < std::min(g + group, a.size()); ++k) {
      float& chain = k % 2 == 0 ? e : o;
      chain = fma_f32(to_f32(a[k]), to_f32(b[k]), chain);
    }
    c = c + (e + o);
  }
  return c;
}

TEST_CASE("dot_bf16: groups of 32; other groupings are other functions") {
  HostArithmetic guard;
  int group16 = 0, group64 = 0, chain = 0, swapped = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const int64_t n = 1 + static_cast<int64_t>(random_bits(key_from_seed(seed), 9) % 200u);
    std::vector<Bf16> a, b;
    for (float x : rough_values(seed, n)) a.push_back(to_bf16(x));
    for (float x : rough_values(seed + 1000, n)) b.push_back(to_bf16(x));
    const auto at_a = [&](int64_t k) { return a[static_cast<size_t>(k)]; };
    const auto at_b = [&](int64_t k) { return b[static_cast<size_t>(k)]; };
    const float c = dot_bf16(n, at_a, at_b);
    CHECK(bits_of(c) == bits_of(grouped_dot(a, b, 32)));
    // Storing c at a multiple of 32 and going on is free.
    const int64_t cut = n / 64 * 32;
    const float first = dot_bf16(cut, at_a, at_b);
    CHECK(bits_of(c) == bits_of(dot_bf16(
                            n - cut, [&](int64_t k) { return at_a(cut + k); },
                            [&](int64_t k) { return at_b(cut + k); }, first)));
    group16 += c != grouped_dot(a, b, 16);
    group64 += c != grouped_dot(a, b, 64);
    chain += c != dot_f32(n, at_a, at_b);
    // Pairs added in the other order within each couple of pairs: VDPBF16PS on natural pairs.
    float natural = 0;
    for (int64_t k = 0; k < n; k += 2) {
      if (k + 1 < n) natural = fma_f32(to_f32(at_a(k + 1)), to_f32(at_b(k + 1)), natural);
      natural = fma_f32(to_f32(at_a(k)), to_f32(at_b(k)), natural);
    }
    swapped += c != natural;
  }
  CHECK(group16 > 20);
  CHECK(group64 > 20);
  CHECK(chain > 100);
  CHECK(swapped > 100);
}

TEST_CASE("dot: initial values, empty contractions, signed zeros, flushing") {
  HostArithmetic guard;
  const auto bf = [](float x) { return [x](int64_t) { return to_bf16(x); }; };
  CHECK(dot_bf16(0, bf(1), bf(1), 2.5f) == 2.5f);
  CHECK(dot_f32(0, bf(1), bf(1)) == 0.0f);
  CHECK(bits_of(dot_bf16(1, bf(-0.0f), bf(1), -0.0f)) == 0);  // -0 + (+0)
  CHECK(bits_of(dot_f32(1, bf(-0.0f), bf(1))) == 0);
  CHECK(dot_bf16(3, bf(2), bf(3), 1.0f) == 19.0f);
  CHECK(bits_of(dot_bf16(1, bf(0x1p-80f), bf(-0x1p-80f))) == 0);  // -0 + +0 after the flush
  CHECK(std::isinf(dot_bf16(1, bf(INFINITY), bf(1))));            // padding is +0 in both operands
  CHECK(std::isnan(dot_bf16(2, bf(INFINITY), bf(0))));            // a zero factor is not skipped
}

TEST_CASE("leaves: bounds of N8") {
  CHECK(leaf_bounds("kv_heads", 10, 4) == std::vector<LeafBounds>{{0, 3}, {3, 6}, {6, 9}, {9, 10}});
  CHECK(leaf_bounds("kv_heads", 4, 6) ==
        std::vector<LeafBounds>{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 4}, {4, 4}});
  CHECK(leaf_bounds("mlp", 1376, 4) ==
        std::vector<LeafBounds>{{0, 344}, {344, 688}, {688, 1032}, {1032, 1376}});
  CHECK(leaf_bounds("vocab", 50, 4) == std::vector<LeafBounds>{{0, 16}, {16, 32}, {32, 48}, {48, 50}});
  CHECK(leaf_bounds("pos", 1000, 4) ==
        std::vector<LeafBounds>{{0, 256}, {256, 512}, {512, 768}, {768, 1000}});
  CHECK(leaf_bounds("pos", 100, 2) == std::vector<LeafBounds>{{0, 100}, {100, 100}});
  CHECK(leaf_bounds("embed", 0, 2) == std::vector<LeafBounds>{{0, 0}, {0, 0}});
  CHECK(leaf_size("mlp", 9, 1) == 16);
  LeafTable table{{{"kv_heads", 2}, {"mlp", 4}}};
  CHECK(table.count("mlp") == 4);
  CHECK(table.count("embed") == 1);
  CHECK(table.position("embed") == -1);
  CHECK(table.validate().ok());
  CHECK_FALSE(LeafTable{{{"mlp", 0}}}.validate().ok());
  CHECK_FALSE(LeafTable{{{"mlp", 2}, {"mlp", 2}}}.validate().ok());
  CHECK_FALSE(LeafTable{{{"", 2}}}.validate().ok());
}

}  // namespace
}  // namespace ostro::numerics
