// The order of sort, top_k and argmax (docs/numerics.md, N10): numbers by value, NaN above all of them.
#pragma once

namespace ostro::cpu {

template <typename T>
bool is_below(T a, T b) {
  const bool a_nan = a != a, b_nan = b != b;
  return a_nan || b_nan ? b_nan && !a_nan : a < b;
}

}  // namespace ostro::cpu
