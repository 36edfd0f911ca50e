// Accuracy, special values and golden bits of the functions of N2, N3 and N9.
#include "ostro/numerics/functions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "ostro/base/test_size.h"
#include "ostro/numerics/exp2_sum.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/sums.h"

namespace ostro::numerics {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kQuietNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t f32_bits(float x) { return std::bit_cast<uint32_t>(x); }
float f32_of(uint64_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x)); }

// Distance of `got` from the exact value in units of the last place of an f32 near it.
long double ulps(float got, long double exact) {
  const long double magnitude = std::max(std::fabs(exact), 0x1p-126L);
  const int exponent = std::ilogb(magnitude);
  return std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, exponent - 23);
}

// Largest error over every `stride`-th bit pattern with low <= |x| <= high. The oracle is the C library's
// extended precision, on the x87 unit, which MXCSR does not reach.
template <typename F, typename Oracle>
long double worst(F f, Oracle oracle, float low, float high, uint64_t stride = 6007) {
  long double result = 0;
  for (uint64_t b = 0; b < (uint64_t{1} << 32); b += stride) {
    const float x = f32_of(b);
    if (!(std::fabs(x) >= low && std::fabs(x) <= high)) continue;
    result = std::max(result, ulps(f(x), oracle(static_cast<long double>(x))));
  }
  return result;
}

// Fingerprint of f over every `stride`-th input; all NaNs count as one.
template <typename F>
uint64_t golden(F f, uint64_t stride, uint64_t first = 0) {
  Fingerprint fingerprint;
  for (uint64_t b = first; b < (uint64_t{1} << 32); b += stride) {
    const float y = f(f32_of(b));
    fingerprint.add_word(b, y != y ? 0x7fc00000u : f32_bits(y));
  }
  return fingerprint.lane[0];
}

TEST_CASE("functions: accuracy") {
  HostArithmetic guard;
  CHECK(worst(exp_f32, expl, 0x1p-126f, 87.0f) <= 1.5L);  // 3 promised
  const auto positive_only = [](auto f) { return [f](long double x) { return x > 0 ? f(x) : 0; }; };
  const auto or_zero = [](auto f) { return [f](float x) { return x > 0 ? f(x) : 0.0f; }; };
  CHECK(worst(or_zero(log_f32), positive_only(logl), 0x1p-126f, 3e38f) <= 0.501L);
  CHECK(worst(or_zero(log2_f32), positive_only(log2l), 0x1p-126f, 3e38f) <= 0.501L);
  CHECK(worst(log1p_f32, log1pl, 0x1p-126f, 0.999999f) <= 0.501L);
  CHECK(worst(or_zero(log1p_f32), positive_only(log1pl), 1.0f, 3e38f) <= 0.501L);
  CHECK(worst(tanh_f32, tanhl, 0x1p-126f, 3e38f) <= 0.501L);
  CHECK(worst(sin_f32, sinl, 0x1p-126f, 0x1p20f) <= 0.501L);
  CHECK(worst(cos_f32, cosl, 0x1p-126f, 0x1p20f) <= 0.501L);
  CHECK(worst(erf_f32, erfl, 0x1p-126f, 3e38f) <= 0.501L);
  // erfinv: one Newton step from the result gives the exact value to second order.
  const auto erfinv_exact = [](long double x) {
    const long double y = erfinv_f64(static_cast<double>(x));
    const long double miss = y > 0 ? (1 - x) - erfcl(y) : erfcl(-y) - (1 + x);
    const long double small = std::fabs(x) < 0.25L ? erfl(y) - x : miss;
    return y - small * std::sqrt(std::acos(-1.0L)) / 2 * std::exp(y * y);
  };
  CHECK(worst(erfinv_f32, erfinv_exact, 0x1p-120f, 0x1.fffffep-1f) <= 0.501L);
  // E is good to 1.6e-7 relative, plus what rounding t costs for larger |t|.
  const auto block = [](float x) { return exp2_block(x, 0.0f, 1.0f); };
  CHECK(worst(block, exp2l, 0x1p-126f, 125.9f) <= 2.8L);
}

TEST_CASE("functions: f64") {
  HostArithmetic guard;
  const auto relative = [](double got, long double exact) {
    return static_cast<double>(std::fabs((static_cast<long double>(got) - exact) / exact));
  };
  double worst_error[6] = {};
  for (int i = 1; i < 20000; ++i) {
    const double x = i * 0.00317;
    const double errors[6] = {relative(exp_f64(x), expl(x)),
                              relative(exp_f64(-x), expl(-static_cast<long double>(x))),
                              relative(log_f64(x), logl(x)),
                              relative(log1p_f64(x * 1e-3), log1pl(x * 1e-3)),
                              relative(tanh_f64(x), tanhl(x)),
                              std::fabs(static_cast<double>(cosl(x) - static_cast<long double>(cos_f64(x))))};
    for (int k = 0; k < 6; ++k) worst_error[k] = std::max(worst_error[k], errors[k]);
  }
  for (int k = 0; k < 6; ++k) {
    CAPTURE(k);
    CHECK(worst_error[k] <= 6e-16);
  }
  CHECK(relative(pow_f64(500000.0, -0.734375), powl(500000.0L, -0.734375L)) < 4e-15);
  CHECK(pow_int_f64(0.5, 10) == 0x1p-10);
  CHECK(pow_int_f64(2.0, -3) == 0.125);
  CHECK(pow_int_f64(3.0, 0) == 1.0);
  // 1.1^7 by square and multiply: 1.1, then times its square, then times its fourth power.
  const double b = 1.1, b2 = b * b, b4 = b2 * b2;
  CHECK(pow_int_f64(b, 7) == (b * b2) * b4);
}

TEST_CASE("functions: special values") {
  HostArithmetic guard;
  CHECK(exp_f32(0.0f) == 1.0f);
  CHECK(exp_f32(-0.0f) == 1.0f);
  CHECK(f32_bits(exp_f32(-kInfinity)) == 0);
  CHECK(f32_bits(exp_f32(-88.0f)) == 0);  // below the smallest normal number
  CHECK(exp_f32(89.0f) == kInfinity);
  CHECK(exp_f32(kInfinity) == kInfinity);
  CHECK(log_f32(1.0f) == 0.0f);
  CHECK(log_f32(0.0f) == -kInfinity);
  CHECK(log_f32(f32_of(1)) == -kInfinity);  // a denormal is a zero
  CHECK(std::isnan(log_f32(-1.0f)));
  CHECK(log_f32(kInfinity) == kInfinity);
  for (int e = -126; e <= 127; ++e) CHECK(log2_f32(std::ldexp(1.0f, e)) == static_cast<float>(e));
  CHECK(log1p_f32(-1.0f) == -kInfinity);
  CHECK(log1p_f32(kInfinity) == kInfinity);
  CHECK(std::isnan(log1p_f32(-2.0f)));
  CHECK(tanh_f32(kInfinity) == 1.0f);
  CHECK(tanh_f32(-kInfinity) == -1.0f);
  CHECK(f32_bits(tanh_f32(-0.0f)) == 0x80000000u);
  CHECK(f32_bits(sin_f32(-0.0f)) == 0x80000000u);
  CHECK(cos_f32(0.0f) == 1.0f);
  CHECK(std::isnan(sin_f32(kInfinity)));
  CHECK(std::isnan(cos_f32(0x1p31f)));
  CHECK(f32_bits(erf_f32(-0.0f)) == 0x80000000u);
  CHECK(erf_f32(kInfinity) == 1.0f);
  CHECK(erfinv_f32(1.0f) == kInfinity);
  CHECK(erfinv_f32(-1.0f) == -kInfinity);
  CHECK(std::isnan(erfinv_f32(1.5f)));
  CHECK(sigmoid_f32(0.0f) == 0.5f);
  CHECK(softplus_f32(-200.0f) == 0.0f);
  for (auto f : {exp_f32, log_f32, log2_f32, log1p_f32, tanh_f32, sin_f32, cos_f32, erf_f32, erfinv_f32,
                 sigmoid_f32, silu_f32, gelu_tanh_f32, gelu_erf_f32, softplus_f32}) {
    CHECK(std::isnan(f(kQuietNaN)));
  }
  CHECK(std::isnan(min_f32(kQuietNaN, 1.0f)));
  CHECK(std::isnan(max_f32(1.0f, kQuietNaN)));
  CHECK(f32_bits(min_f32(0.0f, -0.0f)) == 0x80000000u);
  CHECK(f32_bits(max_f32(-0.0f, 0.0f)) == 0);
  CHECK(f32_bits(max_f32(f32_of(5), -1.0f)) == 0);
  CHECK(f32_bits(min_f32(f32_of(0x80000005u), 1.0f)) == 0x80000000u);
  CHECK(f32_bits(floor_f32(f32_of(0x80000005u))) == 0x80000000u);
  CHECK(floor_f32(-1.5f) == -2.0f);
}

TEST_CASE("E of N9: edges") {
  HostArithmetic guard;
  CHECK(exp2_block(3.0f, 3.0f, kLog2e) == 1.0f);
  CHECK(exp2_block(-126.0f, 0.0f, 1.0f) == 0x1p-126f);
  CHECK(f32_bits(exp2_block(-126.00001f, 0.0f, 1.0f)) == 0);
  CHECK(exp2_block(128.0f, 0.0f, 1.0f) == kInfinity);
  CHECK(exp2_block(127.0f, 0.0f, 1.0f) == 0x1p127f);
  CHECK(std::isfinite(exp2_block(127.99999f, 0.0f, 1.0f)));
  CHECK(f32_bits(exp2_block(-1e30f, 0.0f, kLog2e)) == 0);  // against an empty row's maximum
  CHECK(exp2_block(-1e30f, -1e30f, kLog2e) == 1.0f);
  CHECK(std::isnan(exp2_block(kQuietNaN, 0.0f, 1.0f)));
  for (uint64_t b = 0x80000000u; b < 0xff800000u; b += 4001) CHECK(exp2_block(f32_of(b), 0.0f, 1.0f) <= 1.0f);
}

TEST_CASE("E of N9 over a row is the striped sum of its elements") {
  HostArithmetic guard;
  std::vector<float> x;
  for (int i = 0; i < 1000; ++i) x.push_back(static_cast<float>((i * 7919) % 1009) / 8 - 120);
  for (const size_t n : {0, 1, 63, 64, 65, 200, 1000}) {
    const auto row = std::span<const float>(x).first(n);
    const float want = striped_sum<float>(static_cast<int64_t>(n), [&](int64_t i) {
      return exp2_block(row[static_cast<size_t>(i)], 6.0f, kLog2e);
    });
    CHECK(f32_bits(exp2_block_sum(row, 6.0f, kLog2e)) == f32_bits(want));
  }
  x[70] = kQuietNaN;
  CHECK(std::isnan(exp2_block_sum(x, 6.0f, kLog2e)));
}

TEST_CASE("kappa of N9 is rounded once") {
  CHECK(attention_kappa(1.0f) == kLog2e);
  CHECK(attention_kappa(0.125f) == kLog2e / 8);
  // 1 / sqrt(112): with the f32 log2(e) the product would be 0x1.172feap-3.
  CHECK(attention_kappa(0x1.83091ep-4f) == 0x1.172fecp-3f);
}

float block_of(float x) { return exp2_block(x, 0.0f, kLog2e); }

// Any change here is a new numerics version or a fixed bug.
const struct {
  const char* name;
  float (*f)(float);
  uint64_t sampled;  // every 40,009th input
  uint64_t dense;    // every 31st input
} kGolden[] = {
    {"exp", exp_f32, 0x37a537e839751c1e, 0x74fdbe22ac9390c0},
    {"log", log_f32, 0xb725c2c59da2c292, 0xc8a6f053f39d8c13},
    {"log2", log2_f32, 0x03672c9635ffb301, 0xc6f10ce141de8f93},
    {"log1p", log1p_f32, 0xa298cdf4caf62d58, 0x4770590e3bb68910},
    {"tanh", tanh_f32, 0xb37820d705cdad07, 0xcd02a3211f711898},
    {"sin", sin_f32, 0xd06ca563c029558b, 0x714e875ef32c1ebb},
    {"cos", cos_f32, 0x040113c3089f8fe8, 0x56ed65e9f76cccc9},
    {"erf", erf_f32, 0xbe8c65b99f62a65c, 0x99e6abc5db8d0a96},
    {"erfinv", erfinv_f32, 0x674488b2093ac9ee, 0x49bc42e258c79e91},
    {"sigmoid", sigmoid_f32, 0xde5658cae8da2d84, 0x9603306fb923e364},
    {"silu", silu_f32, 0x37dea3b98cc228b4, 0x03ca3768c7f87217},
    {"gelu_tanh", gelu_tanh_f32, 0xa0e90ba26bb2b8d7, 0xd67ba46123a0bcd2},
    {"gelu_erf", gelu_erf_f32, 0x962af6d3834c4219, 0x22495e0042126dff},
    {"softplus", softplus_f32, 0x47aa10e4368838f7, 0x52d03f0c05ac8f48},
    {"E", block_of, 0xaf3482518116f626, 0xddd1089b73db5f44},
};

TEST_CASE("functions: golden bits") {
  HostArithmetic guard;
  for (const auto& g : kGolden) {
    CAPTURE(g.name);
    CHECK(golden(g.f, 40009) == g.sampled);
  }
}

// Of every 31st input there is one golden value a function, so a sample is of functions: four that the seed
// draws.
TEST_CASE("slow: functions: golden bits, every 31st input") {
  HostArithmetic guard;
  const size_t count = std::size(kGolden), some = sized<size_t>(4, count, count);
  for (size_t i = 0; i < some; ++i) {
    const auto& g = kGolden[(test_seed() + i) % count];
    MESSAGE(std::string(g.name));
    CAPTURE(g.name);
    CHECK(golden(g.f, 31, 7) == g.dense);
  }
}

// Every 101st input of this range from a drawn one on; every 7th in a full run, all of them in an exhaustive
// one.
TEST_CASE("slow: exp within 3 ulp") {
  HostArithmetic guard;
  const uint64_t step = sized<uint64_t>(101, 7, 1), first = test_seed() % step;
  MESSAGE("inputs ", first, " + n * ", step);
  double largest = 0;
  for (uint64_t b = 0x30000000u + first; b <= 0x42ae0000u;
       b += step) {  // 2^-31 to 87, both signs; below it exp is 1 + x
    for (uint64_t sign : {uint64_t{0}, uint64_t{0x80000000u}}) {
      const float x = f32_of(b | sign);
      const double exact = exp_f64(static_cast<double>(x));
      const double ulp =
          std::bit_cast<double>((std::bit_cast<uint64_t>(exact) & 0x7ff0000000000000u)) * 0x1p-23;
      largest = std::max(largest, std::fabs(static_cast<double>(exp_f32(x)) - exact) / ulp);
    }
  }
  MESSAGE("largest error of exp: ", largest, " ulp");
  CHECK(largest <= 3.0);
}

}  // namespace
}  // namespace ostro::numerics
