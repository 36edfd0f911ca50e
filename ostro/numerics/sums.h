// striped_sum, serial_sum: sums of docs/spec/numerics.md, striped along rows (N4) and serial (N5).
//
// `at(r)` gives element r as T, so that callers can sum strided or indexed data; T is f32 or f64.
#pragma once

#include <cstdint>
#include <span>

#include "ostro/numerics/tree.h"

namespace ostro::numerics {

inline constexpr int kStripes = 64;

// The striped sum's last step, N4: 64 lanes -> one value. Changes the lanes.
template <typename T>
T combine_stripes(T (&lane)[kStripes]) {
  for (int i = 0; i < 16; ++i) lane[i] = (lane[i] + lane[16 + i]) + (lane[32 + i] + lane[48 + i]);
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] = lane[i] + lane[i + half];
  }
  return lane[0];
}

// N4 over at(0) .. at(n - 1): element r goes to lane r mod 64, ascending, from +0.
template <typename T, typename At>
T striped_sum(int64_t n, At&& at) {
  T lane[kStripes] = {};
  for (int64_t r = 0; r < n; ++r) lane[r % kStripes] = lane[r % kStripes] + static_cast<T>(at(r));
  return combine_stripes(lane);
}

// N4 over the elements of x.
template <typename T>
T striped_sum(std::span<const T> x) {
  return striped_sum<T>(static_cast<int64_t>(x.size()), [&](int64_t r) { return x[static_cast<size_t>(r)]; });
}

// N5: one chain, ascending, from +0.
template <typename T, typename At>
T serial_sum(int64_t n, At&& at) {
  T sum = T{0};
  for (int64_t r = 0; r < n; ++r) sum = sum + static_cast<T>(at(r));
  return sum;
}

// N5 over the elements of x.
template <typename T>
T serial_sum(std::span<const T> x) {
  return serial_sum<T>(static_cast<int64_t>(x.size()), [&](int64_t r) { return x[static_cast<size_t>(r)]; });
}

}  // namespace ostro::numerics
