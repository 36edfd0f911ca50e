// load_run, store_run: copy runs of elements between memory and plain arrays.
//
// Memory has any dtype and, for load_run, any stride; a plain array has the type in which its elements are
// computed. Thread-safe; there are no errors.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ostro/ir/program/shape.h"
#include "ostro/numerics/bf16.h"

namespace ostro::cpu {

// out[i] = element i at `data`, `stride` elements apart; T as with_element_type says.
template <typename T>
void load_run(const char* data, ir::DType dtype, int64_t stride, int64_t n, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == ir::DType::bf16) {
      const auto* p = reinterpret_cast<const numerics::Bf16*>(data);
      for (int64_t i = 0; i < n; ++i) out[i] = numerics::to_f32(p[i * stride]);
      return;
    }
  }
  const T* p = reinterpret_cast<const T*>(data);
  if (stride == 1) {
    std::memcpy(out, p, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = p[i * stride];
  }
}

// The other direction: from a plain array to memory. bf16 is rounded once.
template <typename T>
void store_run(char* data, ir::DType dtype, int64_t n, const T* in) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == ir::DType::bf16) {
      auto* p = reinterpret_cast<numerics::Bf16*>(data);
      for (int64_t i = 0; i < n; ++i) p[i] = numerics::to_bf16(in[i]);
      return;
    }
  }
  std::memcpy(data, in, static_cast<size_t>(n) * sizeof(T));
}

}  // namespace ostro::cpu
