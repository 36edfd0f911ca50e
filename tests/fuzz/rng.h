// Rng: a stream of random choices: threefry (docs/spec/numerics.md, N12) over a counter.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ostro/numerics/threefry.h"

namespace ostro::fuzz {

class Rng {
 public:
  explicit Rng(uint64_t seed) : key_(numerics::key_from_seed(seed)) {}

  uint32_t bits() { return numerics::random_bits(key_, next_++); }
  // 0 <= result < n; n >= 1.
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double p) { return static_cast<double>(bits()) < p * 4294967296.0; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(below(static_cast<int64_t>(from.size())))];
  }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  }

 private:
  numerics::Key key_;
  uint64_t next_ = 0;
};

}  // namespace ostro::fuzz
