// __m512, __m512i: vectors of 64 bytes, as two halves of AVX2; make, halves and lanes_of apply an operation
// to halves or to lanes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct __m512 {
  __m256 low, high;
};
struct __m512i {
  __m256i low, high;
};
struct __m512bh {
  __m256i low, high;
};
#ifndef __clang__  // which has it without AVX512-BF16
struct __m256bh {
  __m256i all;
};
#endif
using __mmask16 = unsigned short;
using __mmask32 = unsigned int;
using __mmask64 = unsigned long long;

namespace ostro::emulated {

inline void require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "emulated instruction: %s\n", what);
  std::abort();
}

inline void require_aligned(const void* address) {
  require(reinterpret_cast<uintptr_t>(address) % 64 == 0, "a vector that is not aligned to 64 bytes");
}

// The vector's lanes, lowest first.
template <class T, class V>
inline auto lanes_of(V v) {
  using Lanes = std::array<T, sizeof(V) / sizeof(T)>;
  return __builtin_bit_cast(Lanes, v);
}

// The vector V whose lane i is f(i).
template <class V, class T, class F>
inline V make(F f) {
  std::array<T, sizeof(V) / sizeof(T)> out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(f(i));
  return __builtin_bit_cast(V, out);
}

// The vector of f applied to either half.
template <class V, class F, class... Vs>
inline V halves(F f, const Vs&... v) {
  return {f(v.low...), f(v.high...)};
}

inline bool bit(uint64_t mask, size_t i) { return (mask >> i & 1) != 0; }

// Lanes that the mask leaves out are neither read nor written, as the processor does not touch their memory.
template <class V, class T>
inline V load_masked(uint64_t mask, const void* from) {
  return make<V, T>([&](size_t i) {
    T x = 0;
    if (bit(mask, i)) std::memcpy(&x, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
    return x;
  });
}

template <class T, class V>
inline void store_masked(void* to, uint32_t mask, V v) {
  const auto x = lanes_of<T>(v);
  for (size_t i = 0; i < x.size(); ++i)
    if (bit(mask, i)) std::memcpy(static_cast<char*>(to) + i * sizeof(T), &x[i], sizeof(T));
}

}  // namespace ostro::emulated

#define OSTRO_EMULATED static inline __attribute__((unused, always_inline))
