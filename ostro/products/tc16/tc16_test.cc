// Products by the rule of tensor cores: each kernel against the scalar definition, and the definition against
// a second one in f64 that can be made wrong. Products of whole matrices are in gemm_test.cc.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>

#include "ostro/base/test_size.h"
#include "ostro/numerics/tc16.h"
#include "ostro/products/tc16/tc16_admission.h"
#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {
namespace {

// N23 and its neighbours.
struct SumRule {
  int kept = 25, group = 16, least = -133;
  bool nearest = false;      // the result is rounded to nearest
  bool down = false;         // addends are cut toward minus infinity
  bool zero_counts = false;  // a zero product has an exponent
  bool normalised = false;   // a product of 2 or more has the next exponent
  bool flushed = false;      // denormal results are zero
};

struct BinaryNumber {
  double significand;  // with its sign, in [1, 2) or, of a denormal, below 1
  int exponent;
};
BinaryNumber number_from(uint16_t bits) {
  const int field = bits >> 7 & 255;
  const double significand = (bits & 127) / 128.0 + (field > 0 ? 1 : 0);
  return {bits >> 15 != 0 ? -significand : significand, std::max(field, 1) - 127};
}

// A step of finite numbers in f64, where all of it is exact.
uint32_t step_in_f64(const SumRule& rule, const uint16_t* a, const uint16_t* b, int64_t n, uint32_t c) {
  double addend[17];
  int exponent[17], count = 0, largest = rule.least;
  const auto add = [&](double significand, int at, bool counts) {
    if (counts) largest = std::max(largest, at);
    addend[count] = std::ldexp(significand, at);
    exponent[count++] = at;
  };
  for (int64_t k = 0; k < n; ++k) {
    const BinaryNumber x = number_from(a[k]), y = number_from(b[k]);
    const double product = x.significand * y.significand;
    const int up = rule.normalised && std::abs(product) >= 2 ? 1 : 0;
    add(std::ldexp(product, -up), x.exponent + y.exponent + up, product != 0 || rule.zero_counts);
  }
  const int field = static_cast<int>(c >> 23 & 255);
  const double of_c = (c & 0x7fffff) * 0x1p-23 + (field > 0 ? 1 : 0);
  add(c >> 31 != 0 ? -of_c : of_c, std::max(field, 1) - 127, of_c != 0);
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double units = std::ldexp(addend[i], rule.kept - largest);
    sum += rule.down ? std::floor(units) : std::trunc(units);
  }
  const double value = std::ldexp(std::abs(sum), largest - rule.kept);
  if (value == 0) return 0;
  const int e = std::max(std::ilogb(value), -126);
  const double bits = std::ldexp(value, 23 - e);
  const auto kept = static_cast<uint32_t>(rule.nearest ? std::nearbyint(bits) : std::trunc(bits));
  if (kept == 0 || (rule.flushed && kept < 0x800000)) return 0;
  const uint32_t magnitude =
      kept < 0x800000 ? kept : std::min((static_cast<uint32_t>(e + 126) << 23) + kept, 0x7f800000u);
  return (sum < 0 ? 0x80000000u : 0) | (e > 127 ? 0x7f800000u : magnitude);
}

uint32_t chain_in_f64(const SumRule& rule, const uint16_t* a, const uint16_t* b, int64_t n) {
  uint32_t c = 0;
  for (int64_t k = 0; k < n && (c & 0x7f800000u) != 0x7f800000u; k += rule.group)
    c = step_in_f64(rule, a + k, b + k, std::min<int64_t>(rule.group, n - k), c);
  return c;
}

// Chains of each kind but the last, whose numbers are not all finite, that end with another number than by
// the definition. A chain that becomes infinite is left out, as it goes on by other rules.
int64_t differ(const SumRule& rule, int64_t chains = 400) {
  int64_t different = 0;
  for (int kind = 0; kind + 1 < kTc16Kinds; ++kind) {
    uint64_t state = 77 + static_cast<uint64_t>(kind);
    for (int64_t i = 0; i < chains; ++i) {
      const int64_t k = 1 + i % 70;
      const Tc16Operands x = draw_tc16(kind, 1, k, 1, state);
      const uint32_t want = std::bit_cast<uint32_t>(numerics::dot_tc16(
          k, [&](int64_t at) { return numerics::Bf16{x.a[static_cast<size_t>(at)]}; },
          [&](int64_t at) { return numerics::Bf16{x.b[static_cast<size_t>(at)]}; }));
      const uint32_t got = chain_in_f64(rule, x.a.data(), x.b.data(), k);
      if ((want & 0x7f800000u) != 0x7f800000u && got != want) ++different;
    }
  }
  return different;
}

TEST_CASE("the rule of tensor cores: the definition is that of exact sums, and no neighbour is") {
  CHECK(differ({}, test_size() == TestSize::kSample ? 400 : 20000) == 0);
  CHECK(differ({.kept = 24}) > 0);
  CHECK(differ({.kept = 26}) > 0);
  CHECK(differ({.group = 8}) > 0);
  CHECK(differ({.nearest = true}) > 0);
  CHECK(differ({.down = true}) > 0);
  CHECK(differ({.normalised = true}) > 0);
  CHECK(differ({.flushed = true}) > 0);
}

// A bf16 number: 1 + fraction / 128, times 2^exponent.
uint16_t bf16_of(int fraction, int exponent) {
  return static_cast<uint16_t>((exponent + 127) << 7 | fraction);
}

TEST_CASE("the rule of tensor cores: which exponents count, and the least") {
  const auto both = [](const SumRule& wrong, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b) {
    const auto n = static_cast<int64_t>(a.size());
    const uint32_t right = std::bit_cast<uint32_t>(numerics::dot_tc16(
        n, [&](int64_t k) { return numerics::Bf16{a[static_cast<size_t>(k)]}; },
        [&](int64_t k) { return numerics::Bf16{b[static_cast<size_t>(k)]}; }));
    CHECK(chain_in_f64({}, a.data(), b.data(), n) == right);
    return std::pair(right, chain_in_f64(wrong, a.data(), b.data(), n));
  };
  // 159 * 161 is 25 * 1024 - 1: a unit of 2^-159 (2^-158) is missing at a multiple of 2^-149, the last bit of
  // an f32, and the second product has it. It counts where the largest exponent may be so small.
  const std::vector<uint16_t> left = {bf16_of(31, -72), bf16_of(0, -79)},
                              right = {bf16_of(33, -73), bf16_of(0, -80)};
  CHECK(both({.least = -134}, left, right) == std::pair(24u, 25u));
  const std::vector<uint16_t> more = {bf16_of(31, -71), bf16_of(0, -78)};
  CHECK(both({.least = -132}, more, right) == std::pair(50u, 49u));
  // A zero product does not exist, though its other factor is 2^120.
  const auto zero = both({.zero_counts = true}, {bf16_of(0, 120), bf16_of(0, -26), bf16_of(0, -36)},
                         {0, bf16_of(0, 0), bf16_of(0, 0)});
  CHECK(std::bit_cast<float>(zero.first) == 0x1p-26f + 0x1p-36f);
  CHECK(std::bit_cast<float>(zero.second) == 0x1p-26f);
}

TEST_CASE("the rule of tensor cores: special values") {
  const uint16_t one = 0x3f80, infinity = 0x7f80, minus_infinity = 0xff80, nan = 0x7fc0, large = 0x7f00;
  const auto dot = [](std::vector<uint16_t> a, std::vector<uint16_t> b) {
    return numerics::dot_tc16(
        static_cast<int64_t>(a.size()), [&](int64_t k) { return numerics::Bf16{a[static_cast<size_t>(k)]}; },
        [&](int64_t k) { return numerics::Bf16{b[static_cast<size_t>(k)]}; });
  };
  CHECK(std::isnan(dot({nan, one}, {0, one})));
  CHECK(std::isnan(dot({infinity}, {0})));
  CHECK(std::isnan(dot({infinity, one}, {one, minus_infinity})));
  CHECK(dot({infinity, large}, {one, 0xff00}) == INFINITY);
  CHECK(dot({minus_infinity}, {one}) == -INFINITY);
  CHECK(dot({large, large}, {0x4000, 0xc000}) == 0);  // 2^128 - 2^128: nothing is infinite before the end
  CHECK(dot({large}, {0x4000}) == INFINITY);
  CHECK(dot({large}, {0xc000}) == -INFINITY);
  CHECK(std::bit_cast<uint32_t>(dot({0x8000}, {one})) == 0);  // -0 does not exist
  // An infinity goes on to the next group, and meets its opposite there.
  std::vector<uint16_t> a(17, 0), b(17, one);
  a[0] = infinity;
  CHECK(dot(a, b) == INFINITY);
  a[16] = minus_infinity;
  CHECK(std::isnan(dot(a, b)));
}

TEST_CASE("the rule of tensor cores: every kernel equals the definition, for all kinds and lengths") {
  for (const GemmKernel* kernel : tc16_kernels())
    for (int kind = 0; kind < kTc16Kinds; ++kind)
      for (int64_t k = 1; k <= 70; ++k) {
        const auto drawn = static_cast<uint64_t>(1000 * kind + k);
        std::string difference = tc16_difference(*kernel, k, kind, drawn);
        const uint64_t rounds = test_size() == TestSize::kSample ? 0 : 20;
        for (uint64_t more = 0; difference.empty() && more < rounds; ++more)
          difference = tc16_difference(*kernel, k, kind, 99991 * (more + 1) + drawn);
        CHECK_MESSAGE(difference.empty(), difference);
      }
  for (const machine::Isa isa : machine::available_isas()) {
    const GemmKernel* const chosen = &tc16_kernel(isa);
    CHECK((isa == machine::Isa::kGeneric) == (chosen == &gemm_tc16_generic()));  // none is refused
  }
}

TEST_CASE("the rule of tensor cores: the check of a kernel sees N7") {
  for (int kind = 0; kind < kTc16Kinds; ++kind)
    CHECK_FALSE(tc16_difference(gemm_bf16_generic(), 70, kind, 5).empty());
}

}  // namespace
}  // namespace ostro::kernels
