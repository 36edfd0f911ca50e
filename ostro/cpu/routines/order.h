// is_below, larger, smaller: decide which of two elements is larger.
//
// is_below is for sort, top_k and argmax (docs/spec/numerics.md, N10), larger and smaller are for max and min
// (N2). Pure functions.
#pragma once

#include <type_traits>

#include "ostro/numerics/functions.h"

namespace ostro::cpu {

// Numbers by value, NaN above all of them.
template <typename T>
bool is_below(T a, T b) {
  const bool a_nan = a != a, b_nan = b != b;
  return a_nan || b_nan ? b_nan && !a_nan : a < b;
}

template <typename T>
T larger(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return numerics::max_f32(a, b);
  else if constexpr (std::is_same_v<T, double>)
    return numerics::max_f64(a, b);
  else
    return a < b ? b : a;
}

template <typename T>
T smaller(T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return numerics::min_f32(a, b);
  else if constexpr (std::is_same_v<T, double>)
    return numerics::min_f64(a, b);
  else
    return b < a ? b : a;
}

}  // namespace ostro::cpu
