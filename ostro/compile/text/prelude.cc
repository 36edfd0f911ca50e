#include "ostro/compile/text/prelude.h"

#include <fmt/format.h>

#include "ostro/numerics/coefficients.h"

namespace ostro::compile {
namespace {

using namespace numerics::coefficients;

// Horner's scheme with fma over named coefficients, as one expression. Numbers are written as hex floats. A
// word after $ stands for what a dialect calls it (fill).
template <int N>
std::string horner(const float (&c)[N], const char* x) {
  std::string y = fmt::format("{:a}f", c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fmt::format("$fma32({}, {}, {:a}f)", y, x, c[i]);
  return y;
}
template <int N>
std::string horner(const double (&c)[N], const char* x) {
  std::string y = fmt::format("{:a}", c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fmt::format("$fma64({}, {}, {:a})", y, x, c[i]);
  return y;
}

constexpr const char* kTypes =
    R"__C__(typedef signed char i8; typedef unsigned char u8; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
)__C__";

constexpr const char* kCommon =
    R"__C__(FN float ld_bf16(u16 h) { return f32_of((u32)h << 16); }
FN u16 st_bf16(float x) { return (u16)(bits32(x) >> 16); }
FN float round_bf16(float x) {
  u32 b = bits32(x), magnitude = b & 0x7fffffffu;
  u32 y = b + 0x7fffu + (b >> 16 & 1u);
  y = magnitude < 0x00800000u ? b & 0x80000000u : y;
  y = magnitude > 0x7f800000u ? b | 0x00400000u : y;
  return f32_of(y & 0xffff0000u);
}
/* Denormals become zeros of their sign, by integer arithmetic: a compiler may choose between instructions that
   flush and ones that do not wherever values are only selected. */
FN float flush32(float x) { u32 b = bits32(x); return f32_of((b & 0x7f800000u) == 0 ? b & 0x80000000u : b); }
FN double flush64(double x) {
  u64 b = bits64(x);
  return f64_of((b & 0x7ff0000000000000u) == 0 ? b & 0x8000000000000000u : b);
}
FN float pick32(u8 c, float a, float b) { return f32_of(c != 0 ? bits32(a) : bits32(b)); }
FN double pick64(u8 c, double a, double b) { return f64_of(c != 0 ? bits64(a) : bits64(b)); }
FN float min32(float a, float b) {
  a = flush32(a), b = flush32(b);
  float y = a < b ? a : b;
  y = (a == b) & ((i32)bits32(a) < 0) ? a : y;
  return a != a ? a : y;
}
FN float max32(float a, float b) {
  a = flush32(a), b = flush32(b);
  float y = a > b ? a : b;
  y = (a == b) & ((i32)bits32(a) >= 0) ? a : y;
  return a != a ? a : y;
}
FN double min64(double a, double b) {
  a = flush64(a), b = flush64(b);
  double y = a < b ? a : b;
  y = (a == b) & ((i64)bits64(a) < 0) ? a : y;
  return a != a ? a : y;
}
FN double max64(double a, double b) {
  a = flush64(a), b = flush64(b);
  double y = a > b ? a : b;
  y = (a == b) & ((i64)bits64(a) >= 0) ? a : y;
  return a != a ? a : y;
}
FN float neg32(float x) { return f32_of(bits32(x) ^ 0x80000000u); }
FN float abs32(float x) { return f32_of(bits32(x) & 0x7fffffffu); }
FN double neg64(double x) { return f64_of(bits64(x) ^ 0x8000000000000000u); }
FN double abs64(double x) { return f64_of(bits64(x) & 0x7fffffffffffffffu); }
FN u8 finite32(float x) { return (bits32(x) & 0x7f800000u) != 0x7f800000u; }
FN u8 finite64(double x) { return (bits64(x) & 0x7ff0000000000000u) != 0x7ff0000000000000u; }
FN i32 div_i32(i32 a, i32 b) { return b == 0 ? 0 : b == -1 ? (i32)(0u - (u32)a) : a / b; }
FN i64 div_i64(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? (i64)(0ull - (u64)a) : a / b; }
FN u32 div_u32(u32 a, u32 b) { return b == 0 ? 0 : a / b; }
FN i32 rem_i32(i32 a, i32 b) { return b == 0 || b == -1 ? 0 : a % b; }
FN i64 rem_i64(i64 a, i64 b) { return b == 0 || b == -1 ? 0 : a % b; }
FN u32 rem_u32(u32 a, u32 b) { return b == 0 ? 0 : a % b; }
FN i32 shl_i32(i32 a, i32 b) { return (u32)b >= 32 ? 0 : (i32)((u32)a << b); }
FN i64 shl_i64(i64 a, i64 b) { return (u64)b >= 64 ? 0 : (i64)((u64)a << b); }
FN u32 shl_u32(u32 a, u32 b) { return b >= 32 ? 0 : a << b; }
FN i32 shr_i32(i32 a, i32 b) { return (u32)b >= 32 ? (a < 0 ? -1 : 0) : a >> b; }
FN i64 shr_i64(i64 a, i64 b) { return (u64)b >= 64 ? (a < 0 ? -1 : 0) : a >> b; }
FN u32 shr_u32(u32 a, u32 b) { return b >= 32 ? 0 : a >> b; }
FN i32 to_i32(double x) {
  return x != x ? 0 : x <= -2147483648.0 ? -2147483647 - 1 : x >= 2147483647.0 ? 2147483647 : (i32)x;
}
FN i64 to_i64(double x) {
  return x != x ? 0 : x <= -9223372036854775808.0 ? -9223372036854775807ll - 1
                    : x >= 9223372036854775808.0  ? 9223372036854775807ll : (i64)x;
}
FN u32 to_u32(double x) { return x != x ? 0 : x <= 0.0 ? 0u : x >= 4294967295.0 ? 4294967295u : (u32)(i64)x; }
FN float scale32(float y, i32 n) {
  i32 half = n >> 1;
  return y * f32_of(((u32)half + 127u) << 23) * f32_of(((u32)(n - half) + 127u) << 23);
}
FN double pow2_64(i64 n) { return f64_of(((u64)n + 1023u) << 52); }
FN float sum_stripes32(float* a) {
  for (int i = 0; i < 16; ++i) a[i] = (a[i] + a[16 + i]) + (a[32 + i] + a[48 + i]);
  for (int i = 0; i < 8; ++i) a[i] = a[i] + a[i + 8];
  for (int i = 0; i < 4; ++i) a[i] = a[i] + a[i + 4];
  for (int i = 0; i < 2; ++i) a[i] = a[i] + a[i + 2];
  return a[0] + a[1];
}
FN double sum_stripes64(double* a) {
  for (int i = 0; i < 16; ++i) a[i] = (a[i] + a[16 + i]) + (a[32 + i] + a[48 + i]);
  for (int i = 0; i < 8; ++i) a[i] = a[i] + a[i + 8];
  for (int i = 0; i < 4; ++i) a[i] = a[i] + a[i + 4];
  for (int i = 0; i < 2; ++i) a[i] = a[i] + a[i + 2];
  return a[0] + a[1];
}
)__C__";

std::string functions() {
  std::string t;
  t += "FN float exp32(float x) {\n  x = x < -104.0f ? -104.0f : x;\n  x = x > 89.0f ? 89.0f : x;\n";
  t += fmt::format("  float shifted = x * {:a}f + 0x1.8p23f, n = shifted - 0x1.8p23f;\n", kLog2eF32);
  t += "  i32 k = (i32)(bits32(shifted) - 0x4b400000u);\n";
  t += fmt::format("  float r = $fma32(-n, {:a}f, x);\n  r = $fma32(-n, {:a}f, r);\n", kLn2HiF32, kLn2LoF32);
  t += fmt::format("  float tail = $fma32({}, r * r, r);\n  return scale32(1.0f + tail, k);\n}}\n",
                   horner(kExpF32, "r"));
  t += "FN float sigmoid32(float x) { return 1.0f / (1.0f + exp32(neg32(x))); }\n";
  t += "FN float rsqrt32(float x) { return 1.0f / $sqrt32(x); }\n";
  // f64 inside.
  t += "FN double log_m(double x, double* exponent) {\n  u64 b = bits64(x);\n"
       "  i64 e = (i64)(b - 0x3fe6a09e667f3bcdu) >> 52;\n  double m = f64_of(b - ((u64)e << 52));\n"
       "  double f = m - 1.0, s = f / (2.0 + f), w = s * s;\n  *exponent = (double)(i32)e;\n";
  t += fmt::format("  return $fma64(-s, $fma64(-w, {}, f), f);\n}}\n", horner(kLog, "w"));
  t += "FN double log_special(double x, double y) {\n  y = x == $infinity ? $infinity : y;\n"
       "  y = x == 0.0 ? -$infinity : y;\n  y = x < 0.0 ? $nan : y;\n  return x != x ? x : y;\n}\n";
  t += fmt::format(
      "FN double log64(double x) {{\n  double e, m = log_m(x, &e);\n  double low = $fma64(e, {:a}, m);\n"
      "  return log_special(x, $fma64(e, {:a}, low));\n}}\n",
      kLn2LoF64, kLn2HiF64);
  t += "FN float log32(float x) { return (float)log64((double)x); }\n";
  t += fmt::format(
      "FN float log2_32(float x) {{\n  double e, m = log_m((double)x, &e);\n"
      "  return (float)log_special((double)x, $fma64(m, {:a}, e));\n}}\n",
      kLog2eF64);
  t += "FN float log1p32(float v) {\n  double x = (double)v, u = 1.0 + x, lost = (x - (u - 1.0)) / u, y = "
       "log64(u);\n"
       "  return (float)((u > 0.0) & (u < $infinity) ? y + lost : y);\n}\n";
  t += "FN float tanh32(float v) {\n  double x = (double)v, a = abs64(x);\n  a = a > 22.0 ? 22.0 : a;\n  a = "
       "a + a;\n";
  t += fmt::format("  double shifted = a * {:a} + 0x1.8p52, n = shifted - 0x1.8p52;\n", kLog2eF64);
  t += "  i64 k = (i64)(bits64(shifted) - 0x4338000000000000u);\n";
  t += fmt::format("  double r = $fma64(-n, {:a}, a);\n  r = $fma64(-n, {:a}, r);\n", kLn2HiF64, kLn2LoF64);
  t += fmt::format("  double tail = $fma64({}, r * r, r), power = pow2_64(k);\n", horner(kExpm1, "r"));
  t += "  double em1 = $fma64(tail, power, power - 1.0), y = em1 / (em1 + 2.0);\n"
       "  return (float)f64_of((bits64(y) & 0x7fffffffffffffffu) | (bits64(x) & 0x8000000000000000u));\n}\n";
  t += "FN double trig(double x, i64 turn) {\n";
  t += fmt::format("  double shifted = x * {:a} + 0x1.8p52, n = shifted - 0x1.8p52;\n", kTwoOverPi);
  t += "  i64 q = (i64)(bits64(shifted) - 0x4338000000000000u) + turn;\n";
  t += fmt::format(
      "  double r = $fma64(-n, {:a}, x);\n  r = $fma64(-n, {:a}, r);\n  r = $fma64(-n, {:a}, r);\n",
      kHalfPi[0], kHalfPi[1], kHalfPi[2]);
  t += "  double z = r * r;\n";
  t += fmt::format("  double s = $fma64(r * z, {}, r);\n", horner(kSin, "z"));
  t += fmt::format("  double c = $fma64(z, {}, 1.0);\n", horner(kCos, "z"));
  t += "  double y = (q & 1) != 0 ? c : s;\n  y = (q & 2) != 0 ? neg64(y) : y;\n"
       "  return abs64(x) <= 0x1p30 ? y : $nan;\n}\n";
  t += "FN float sin32(float v) { double x = (double)v; double zero = f64_of(bits64(x) & "
       "0x8000000000000000u);\n"
       "  return (float)(x == 0.0 ? zero : trig(x, 0)); }\n"
       "FN float cos32(float v) { return (float)trig((double)v, 1); }\n";
  t += "FN float erf32(float v) {\n  double x = (double)v, a = abs64(x);\n  a = a > 4.0 ? 4.0 : a;\n  double "
       "b = a - 2.5, z = a * a;\n";
  t += fmt::format("  double far_value = {};\n", horner(kErfFar, "b"));
  t += fmt::format("  double near_value = a * {};\n", horner(kErfNear, "z"));
  t += "  double y = a < 1.0 ? near_value : far_value;\n  y = a == 4.0 ? 1.0 : y;\n"
       "  return (float)f64_of((bits64(y) & 0x7fffffffffffffffu) | (bits64(x) & 0x8000000000000000u));\n}\n";
  t +=
      "FN double erfinv64(double x) {\n  double w = -log64($fma64(-x, x, 1.0)), a = w - 2.5, b = w - 11.0;\n";
  t += fmt::format("  double near_ratio = {};\n", horner(kErfinvNear, "a"));
  t += fmt::format("  double far_ratio = {};\n", horner(kErfinvFar, "b"));
  t += "  double y = x * (w < 5.0 ? near_ratio : far_ratio);\n"
       "  double inf = f64_of(0x7ff0000000000000u | (bits64(x) & 0x8000000000000000u));\n"
       "  y = abs64(x) == 1.0 ? inf : y;\n  return abs64(x) <= 1.0 ? y : $nan;\n}\n"
       "FN float erfinv32(float v) { return (float)erfinv64((double)v); }\n";
  return t;
}

std::string fill(std::string text, const Dialect& d) {
  const std::pair<std::string_view, std::string_view> words[] = {
      {"$fma32", d.fma32},       {"$fma64", d.fma64}, {"$sqrt32", d.sqrt32},
      {"$infinity", d.infinity}, {"$nan", d.nan},
  };
  for (const auto& [word, meaning] : words)
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += meaning.size())
      text.replace(at, word.size(), meaning);
  return text;
}

}  // namespace

std::string prelude_text(const Dialect& d) {
  return fmt::format("{}{}{}#define FN {}\n{}{}", d.head, kTypes, d.loops, d.function, d.bits, d.literals) +
         kCommon + fill(functions(), d);
}

}  // namespace ostro::compile
