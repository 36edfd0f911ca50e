// exp_f32, log_f32, ...: the functions of docs/spec/numerics.md, N2 and N3, one element at a time.
//
// Each is a fixed sequence of IEEE operations. The only data-dependent branches are selections, so every
// vector width gives the same bits. They need the floating-point environment of fp_env.h, in which a denormal
// argument counts as zero.
//
// Accuracy: exp <= 3 ulp; log, log2, log1p, tanh, sin, cos, erf, erfinv <= 1 ulp (f64 inside, rounded once).
#pragma once

#include <cstdint>

namespace ostro::numerics {

// N3, f32. NaN gives NaN (payload unspecified).
float exp_f32(float x);        // exp(0) = 1, exp(-inf) = +0, overflow +inf
float log_f32(float x);        // log(0) = -inf, x < 0 NaN
float log2_f32(float x);       // exact at powers of two
float log1p_f32(float x);      // log1p(-1) = -inf, x < -1 NaN
float tanh_f32(float x);       // tanh(-0) = -0
float sin_f32(float x);        // accuracy promised for |x| <= 2^20; |x| > 2^30 gives NaN
float cos_f32(float x);        // as sin_f32
float erf_f32(float x);        // erf(-0) = -0
float erfinv_f32(float x);     // erfinv(+-1) = +-inf, |x| > 1 NaN
float sigmoid_f32(float x);    // 1 / (1 + exp(-x))
float silu_f32(float x);       // x * sigmoid(x)
float gelu_tanh_f32(float x);  // (0.5 x) * (1 + tanh(k (x + c ((x x) x))))
float gelu_erf_f32(float x);   // (0.5 x) * (1 + erf(x * f32(1/sqrt 2)))
float softplus_f32(float x);   // max(x, 0) + log1p(exp(-|x|))

// N2. sqrt is one rounding (f32 and f64); rsqrt is 1 / sqrt(x), two.
inline float sqrt_f32(float x) { return __builtin_sqrtf(x); }
inline double sqrt_f64(double x) { return __builtin_sqrt(x); }
inline float rsqrt_f32(float x) { return 1.0f / sqrt_f32(x); }
// NaN if either is NaN; -0 < +0; a denormal operand counts, and is returned, as the zero of its sign.
float min_f32(float a, float b);
float max_f32(float a, float b);
double min_f64(double a, double b);
double max_f64(double a, double b);
// The largest integer not above x; floor(-0) = -0.
float floor_f32(float x);
// x * y + z rounded once.
inline float fma_f32(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma_f64(double x, double y, double z) { return __builtin_fma(x, y, z); }

// E of N9: 2^((x - y) * kappa).
float exp2_block(float x, float y, float kappa);
// The factors of N9 and N11.
inline constexpr float kLog2e = 0x1.715476p+0f;  // f32(log2 e)
// kappa of N9 without a soft cap: the f64 product of scale and log2 e, rounded once.
float attention_kappa(float scale);

// Host f64 for schedules, RoPE frequencies, initialisers (<= 2 ulp of f64 except where said).
double exp_f64(double x);
double log_f64(double x);
double log1p_f64(double x);
double tanh_f64(double x);
double sin_f64(double x);  // |x| <= 2^30, else NaN
double cos_f64(double x);
double erf_f64(double x);     // absolute error 1e-13, enough for one f32 rounding
double erfinv_f64(double x);  // |x| <= 1 - 2^-24 or = 1; relative error 1e-12
// base^exponent by squaring: result = 1; for each bit of the exponent from the lowest: if set, result *=
// base; then base *= base if bits are left. Negative exponents: 1 / power.
double pow_int_f64(double base, int64_t exponent);
// exp(exponent * log(base)), base > 0.
double pow_f64(double base, double exponent);

}  // namespace ostro::numerics
