// is_below: the order of sort, top_k and argmax: numbers by value (-0 equals +0), NaN above all of them. A
// pure function.
#pragma once

namespace ostro::interp {

template <typename T>
bool is_below(T a, T b) {
  const bool a_nan = a != a, b_nan = b != b;
  return a_nan || b_nan ? b_nan && !a_nan : a < b;
}

}  // namespace ostro::interp
