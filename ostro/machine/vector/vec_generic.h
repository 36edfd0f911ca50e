// VecGeneric: eight f32 lanes without intrinsics, for kernels on any processor. It has the operations of
// VecAvx2 (vec_avx2.h) that they use, with the same bits, in the vector extensions of gcc and clang.
#pragma once

#include <cstdint>
#include <cstring>

namespace ostro::machine {

struct VecGeneric {
  static constexpr int kWidth = 8;
  // Register tile of a product: rows times vectors of accumulators.
  static constexpr int kRowsF32 = 2, kVectorsF32 = 1;
  static constexpr int kRowsBf16 = 2, kVectorsBf16 = 1;
  using Mask = uint32_t;
  using Floats = float __attribute__((vector_size(32)));
  using Ints = int32_t __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(32)));
  using Halves = uint16_t __attribute__((vector_size(16)));

  Floats v;

  // The bits of x as a value of type To.
  template <class To, class From>
  static To as(From x) {
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
  }
  static Floats pick(Ints condition, Floats a, Floats b) {
    return as<Floats>((condition & as<Ints>(a)) | (~condition & as<Ints>(b)));
  }

  static VecGeneric load(const float* p) {
    VecGeneric x;
    std::memcpy(&x.v, p, sizeof x.v);
    return x;
  }
  static VecGeneric set1(float x) { return {Floats{x, x, x, x, x, x, x, x}}; }
  static VecGeneric zero() { return set1(0); }
  static void keep(VecGeneric&) {}  // a hint to the compiler elsewhere; nothing here
  void store(float* p) const { std::memcpy(p, &v, sizeof v); }
  friend VecGeneric operator+(VecGeneric a, VecGeneric b) { return {a.v + b.v}; }
  friend VecGeneric operator-(VecGeneric a, VecGeneric b) { return {a.v - b.v}; }
  friend VecGeneric operator*(VecGeneric a, VecGeneric b) { return {a.v * b.v}; }
  static VecGeneric fma(VecGeneric a, VecGeneric b, VecGeneric c) {
    for (int i = 0; i < kWidth; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
  }
  static VecGeneric max(VecGeneric a, VecGeneric b) { return {pick(a.v > b.v, a.v, b.v)}; }
  // For |a| < 2^22, ties to even; the result for other values is not used.
  static VecGeneric rint(VecGeneric a) { return {(a.v + 0x1.8p23f) - 0x1.8p23f}; }
  // p * 2^n for integral n in [-126, 127]; NaN stays NaN because the factor multiplies.
  static VecGeneric scale_by_power(VecGeneric p, VecGeneric n) {
    return {p.v * as<Floats>((as<Words>(n.v + 0x1.8p23f) << 23) + 0x3f800000u)};
  }
  // +0 where a < b, else x.
  static VecGeneric zero_where_less(VecGeneric a, VecGeneric b, VecGeneric x) {
    return {as<Floats>(~as<Ints>(a.v < b.v) & as<Ints>(x.v))};
  }

  // Lane i is set where bit i is; select takes a in set lanes, b in the others.
  static Mask mask(uint32_t bits) { return bits; }
  static VecGeneric select(Mask m, VecGeneric a, VecGeneric b) {
    constexpr Words kLanes = {1, 2, 4, 8, 16, 32, 64, 128};
    return {pick(as<Ints>((kLanes & m) != 0), a.v, b.v)};
  }
  // Bit i: p[i] == x.
  static uint32_t equal_bits(const int32_t* p, int32_t x) {
    uint32_t bits = 0;
    for (int i = 0; i < kWidth; ++i) bits |= static_cast<uint32_t>(p[i] == x) << i;
    return bits;
  }

  static VecGeneric load_i8(const int8_t* p) {
    VecGeneric x;
    for (int i = 0; i < kWidth; ++i) x.v[i] = static_cast<float>(p[i]);
    return x;
  }
  // a * b - c, rounded once.
  static VecGeneric fma_less(VecGeneric a, VecGeneric b, VecGeneric c) {
    for (int i = 0; i < kWidth; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], -c.v[i]);
    return c;
  }
  static VecGeneric load_bf16(const uint16_t* p) {
    Halves h;
    std::memcpy(&h, p, sizeof h);
    return {as<Floats>(__builtin_convertvector(h, Words) << 16)};
  }
  // The f32 bits of a rounded to bf16 (N1), low half not cleared. No lane is denormal: arithmetic flushes.
  static Words bf16_bits(VecGeneric a) {
    const Words x = as<Words>(a.v);
    const Words rounded = x + (0x7fffu + (x >> 16 & 1u));
    const Ints nan = as<Ints>(a.v != a.v);
    return as<Words>(pick(nan, as<Floats>(x | 0x00400000u), as<Floats>(rounded)));
  }
  static VecGeneric round_bf16(VecGeneric a) { return {as<Floats>(bf16_bits(a) & 0xffff0000u)}; }
  // out[j][i] = in[i][j] of kWidth x kWidth, row strides in floats.
  static void transpose(const float* in, int64_t ld_in, float* out, int64_t ld_out) {
    for (int j = 0; j < kWidth; ++j)
      for (int i = 0; i < kWidth; ++i) out[j * ld_out + i] = in[i * ld_in + j];
  }
  void store_bf16(uint16_t* p) const {
    const Words high = bf16_bits(*this) >> 16;
    for (int i = 0; i < kWidth; ++i) p[i] = static_cast<uint16_t>(high[i]);
  }
};

}  // namespace ostro::machine
