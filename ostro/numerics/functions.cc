#include "ostro/numerics/functions.h"

#include <algorithm>
#include <bit>

#include "ostro/numerics/casts.h"
#include "ostro/numerics/coefficients.h"
#include "ostro/numerics/exp2_sum.h"
#include "ostro/numerics/sums.h"

namespace ostro::numerics {
namespace {

using namespace coefficients;

constexpr float kInfF32 = __builtin_inff();
constexpr double kInf = __builtin_inf();
constexpr double kNaN = __builtin_nan("");

// Horner by fma, highest power first. A recursion, since a loop in here keeps a loop around it from vectors.
template <int I, int N, typename T>
inline T horner(const T (&c)[N], T x, T y) {
  if constexpr (I < 0)
    return y;
  else if constexpr (sizeof(T) == 4)
    return horner<I - 1>(c, x, fma_f32(y, x, c[I]));
  else
    return horner<I - 1>(c, x, fma_f64(y, x, c[I]));
}
template <int N, typename T>
inline T polynomial(const T (&c)[N], T x) {
  return horner<N - 2>(c, x, c[N - 1]);
}

// x rounded to the nearest integer, ties to even, as a number and as an integer. Adding 1.5 * 2^(p - 1) puts
// the integer into the low bits of the sum; |x| < 2^21 (f32), 2^50 (f64). NaN gives NaN and some integer.
struct RoundedF32 {
  float value;
  int32_t integer;
};
RoundedF32 round_f32(float x) {
  const float shifted = x + 0x1.8p23f;
  return {shifted - 0x1.8p23f, static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - 0x4b400000u)};
}
struct RoundedF64 {
  double value;
  int64_t integer;
};
RoundedF64 round_f64(double x) {
  const double shifted = x + 0x1.8p52;
  return {shifted - 0x1.8p52, static_cast<int64_t>(std::bit_cast<uint64_t>(shifted) - 0x4338000000000000u)};
}

// 2^n for exponents of normal numbers; other n give some bits (used only where the other factor is NaN).
float power_of_two_f32(int32_t n) { return std::bit_cast<float>((static_cast<uint32_t>(n) + 127u) << 23); }
double power_of_two_f64(int64_t n) { return std::bit_cast<double>((static_cast<uint64_t>(n) + 1023u) << 52); }

// y * 2^n in two steps, so that neither factor overflows; only the second step can round.
float scale_f32(float y, int32_t n) {
  const int32_t half = n >> 1;
  return y * power_of_two_f32(half) * power_of_two_f32(n - half);
}
double scale_f64(double y, int64_t n) {
  const int64_t half = n >> 1;
  return y * power_of_two_f64(half) * power_of_two_f64(n - half);
}

// x = n ln 2 + r with |r| <= ln 2 / 2; tail = e^r - 1.
struct ExpParts {
  RoundedF64 n;
  double tail;
};
ExpParts exp_parts(double x) {
  const RoundedF64 n = round_f64(x * kLog2eF64);
  double r = fma_f64(-n.value, kLn2HiF64, x);
  r = fma_f64(-n.value, kLn2LoF64, r);
  return {n, fma_f64(polynomial(kExpm1, r), r * r, r)};
}

// x = 2^exponent * m with sqrt(1/2) <= m < sqrt(2); log_m = log(m). For x > 0, finite, not denormal.
struct LogParts {
  double exponent;
  double log_m;
};
LogParts log_parts(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2) rounded up
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int64_t exponent = static_cast<int64_t>(bits - kRootHalf) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<uint64_t>(exponent) << 52));
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double w = s * s;
  // log(1 + f) = 2 atanh(s) = 2 s + s w P(w), and 2 s = f - s f.
  const double inner = fma_f64(-w, polynomial(kLog, w), f);
  return {static_cast<double>(exponent), fma_f64(-s, inner, f)};
}

// The results of log and its relatives outside the positive finite numbers.
double log_special(double x, double otherwise) {
  double y = otherwise;
  y = x == kInf ? kInf : y;
  y = x == 0.0 ? -kInf : y;
  y = x < 0.0 ? kNaN : y;
  return x != x ? x : y;
}

// Quadrant and remainder of x by pi / 2, then sine and cosine of the remainder.
struct Trig {
  int64_t quadrant;
  double sine;
  double cosine;
};
Trig trig_parts(double x) {
  const RoundedF64 n = round_f64(x * kTwoOverPi);
  double r = fma_f64(-n.value, kHalfPi[0], x);
  r = fma_f64(-n.value, kHalfPi[1], r);
  r = fma_f64(-n.value, kHalfPi[2], r);
  const double z = r * r;
  return {n.integer, fma_f64(r * z, polynomial(kSin, z), r), fma_f64(z, polynomial(kCos, z), 1.0)};
}

double trig_value(double x, const Trig& t, int64_t quadrant) {
  double y = (quadrant & 1) != 0 ? t.cosine : t.sine;
  y = (quadrant & 2) != 0 ? -y : y;
  return __builtin_fabs(x) <= 0x1p30 ? y : kNaN;  // also NaN where x is
}

}  // namespace

float exp_f32(float x) {
  x = x < -104.0f ? -104.0f : x;  // below 2^-150: +0
  x = x > 89.0f ? 89.0f : x;      // above 2^128: +inf
  const RoundedF32 n = round_f32(x * kLog2eF32);
  float r = fma_f32(-n.value, kLn2HiF32, x);
  r = fma_f32(-n.value, kLn2LoF32, r);
  const float tail = fma_f32(polynomial(kExpF32, r), r * r, r);
  return scale_f32(1.0f + tail, n.integer);
}

namespace {
// Inline, so that the compiler makes vectors of it.
[[gnu::always_inline]] inline float exp2(float x, float y, float kappa) {
  constexpr float kCoefficients[] = {1.0f,           0x1.62e42ap-1f, 0x1.ebf9c2p-3f,
                                     0x1.c6b6dap-5f, 0x1.3ce8b2p-7f, 0x1.5bd97cp-10f};
  const float t = (x - y) * kappa;
  float bounded = t < -126.0f ? -126.0f : t;
  bounded = bounded > 128.0f ? 128.0f : bounded;
  const RoundedF32 n = round_f32(bounded);
  float result = scale_f32(polynomial(kCoefficients, bounded - n.value), n.integer);
  result = t < -126.0f ? 0.0f : result;
  return t >= 128.0f ? kInfF32 : result;
}
}  // namespace

float exp2_block(float x, float y, float kappa) { return exp2(x, y, kappa); }

float exp2_block_sum(std::span<const float> x, float y, float kappa) {
  float lane[kStripes] = {}, value[kStripes];
  for (size_t begin = 0; begin < x.size(); begin += kStripes) {
    const float* at = x.data() + begin;
    const auto count = static_cast<int>(std::min<size_t>(kStripes, x.size() - begin));
    for (int i = 0; i < count; ++i) value[i] = exp2(at[i], y, kappa);
    for (int i = 0; i < count; ++i) lane[i] = lane[i] + value[i];
  }
  return combine_stripes(lane);
}

float attention_kappa(float scale) { return static_cast<float>(static_cast<double>(scale) * kLog2eF64); }

double exp_f64(double x) {
  x = x < -750.0 ? -750.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const ExpParts parts = exp_parts(x);
  return scale_f64(1.0 + parts.tail, parts.n.integer);
}

double log_f64(double x) {
  const LogParts parts = log_parts(x);
  const double low = fma_f64(parts.exponent, kLn2LoF64, parts.log_m);
  return log_special(x, fma_f64(parts.exponent, kLn2HiF64, low));
}

double log1p_f64(double x) {
  const double u = 1.0 + x;
  const double lost = (x - (u - 1.0)) / u;  // log(1 + x) = log(u) + (rounding error of 1 + x) / u
  const double y = log_f64(u);
  return u > 0.0 && u < kInf ? y + lost : y;
}

double tanh_f64(double x) {
  double a = __builtin_fabs(x);
  a = a > 22.0 ? 22.0 : a;
  const ExpParts parts = exp_parts(a + a);
  const double power = power_of_two_f64(parts.n.integer);
  const double em1 = fma_f64(parts.tail, power, power - 1.0);  // e^(2a) - 1
  return __builtin_copysign(em1 / (em1 + 2.0), x);
}

double sin_f64(double x) {
  const Trig t = trig_parts(x);
  // Keeps -0. Not `x` itself: a compiler may turn the f32 -> f64 -> f32 round trip of sin_f32 into nothing,
  // and then a denormal would come back unflushed.
  return x == 0.0 ? __builtin_copysign(0.0, x) : trig_value(x, t, t.quadrant);
}

double cos_f64(double x) {
  const Trig t = trig_parts(x);
  return trig_value(x, t, t.quadrant + 1);
}

double erf_f64(double x) {
  double a = __builtin_fabs(x);
  a = a > 4.0 ? 4.0 : a;
  const bool near = a < 1.0;
  const double far_value = polynomial(kErfFar, a - 2.5);
  const double near_value = a * polynomial(kErfNear, a * a);
  const double y = near ? near_value : far_value;
  return __builtin_copysign(a == 4.0 ? 1.0 : y, x);
}

double erfinv_f64(double x) {
  const double w = -log_f64(fma_f64(-x, x, 1.0));
  const double ratio = w < 5.0 ? polynomial(kErfinvNear, w - 2.5) : polynomial(kErfinvFar, w - 11.0);
  const double y = __builtin_fabs(x) == 1.0 ? __builtin_copysign(kInf, x) : x * ratio;
  return __builtin_fabs(x) <= 1.0 ? y : kNaN;
}

double pow_int_f64(double base, int64_t exponent) {
  uint64_t bits = exponent < 0 ? -static_cast<uint64_t>(exponent) : static_cast<uint64_t>(exponent);
  double power = 1.0;
  while (bits != 0) {
    if ((bits & 1) != 0) power = power * base;
    bits >>= 1;
    if (bits != 0) base = base * base;
  }
  return exponent < 0 ? 1.0 / power : power;
}

double pow_f64(double base, double exponent) { return exp_f64(exponent * log_f64(base)); }

float log_f32(float x) { return static_cast<float>(log_f64(static_cast<double>(x))); }

float log2_f32(float x) {
  const double wide = static_cast<double>(x);
  const LogParts parts = log_parts(wide);
  return static_cast<float>(log_special(wide, fma_f64(parts.log_m, kLog2eF64, parts.exponent)));
}

float log1p_f32(float x) { return static_cast<float>(log1p_f64(static_cast<double>(x))); }
float tanh_f32(float x) { return static_cast<float>(tanh_f64(static_cast<double>(x))); }
float sin_f32(float x) { return static_cast<float>(sin_f64(static_cast<double>(x))); }
float cos_f32(float x) { return static_cast<float>(cos_f64(static_cast<double>(x))); }
float erf_f32(float x) { return static_cast<float>(erf_f64(static_cast<double>(x))); }
float erfinv_f32(float x) { return static_cast<float>(erfinv_f64(static_cast<double>(x))); }

float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

float silu_f32(float x) { return x * sigmoid_f32(x); }

float gelu_tanh_f32(float x) {
  const float cube = (x * x) * x;
  const float inner = kGeluScale * (x + kGeluCubic * cube);
  return (0.5f * x) * (1.0f + tanh_f32(inner));
}

float gelu_erf_f32(float x) { return (0.5f * x) * (1.0f + erf_f32(x * kRootHalfF32)); }

float softplus_f32(float x) { return max_f32(x, 0.0f) + log1p_f32(exp_f32(-__builtin_fabsf(x))); }

namespace {

// Flushing first keeps the result the same whether a compiler picks a min instruction, which flushes, or a
// comparison and a selection, which do not.
template <typename T>
T smaller(T a, T b) {
  a = flush_denormal(a);
  b = flush_denormal(b);
  T y = a < b ? a : b;  // b where it is NaN
  y = a == b && __builtin_signbit(a) ? a : y;
  return a != a ? a : y;
}

template <typename T>
T larger(T a, T b) {
  a = flush_denormal(a);
  b = flush_denormal(b);
  T y = a > b ? a : b;
  y = a == b && !__builtin_signbit(a) ? a : y;
  return a != a ? a : y;
}

}  // namespace

float min_f32(float a, float b) { return smaller(a, b); }
float max_f32(float a, float b) { return larger(a, b); }
double min_f64(double a, double b) { return smaller(a, b); }
double max_f64(double a, double b) { return larger(a, b); }

float floor_f32(float x) { return __builtin_floorf(flush_denormal(x)); }

}  // namespace ostro::numerics
