// Draws: numbers drawn one after another by threefry, from one key. A value; each use has its own.
#pragma once

#include <cstdint>

#include "ostro/numerics/threefry.h"

namespace ostro::drawn {

class Draws {
 public:
  explicit Draws(numerics::Key key) : key_(key) {}

  // A number from 0 to n - 1, n > 0: the high half of 32 drawn bits times n. Nearly uniform for small n.
  uint32_t below(uint32_t n) {
    return static_cast<uint32_t>((uint64_t{numerics::random_bits(key_, next_++)} * n) >> 32);
  }
  // The same, where small numbers are more likely than large ones: the lesser of two.
  uint32_t rather_small(uint32_t n) {
    const uint32_t first = below(n), second = below(n);
    return first < second ? first : second;
  }
  // A number from least to most.
  uint32_t between(uint32_t least, uint32_t most) { return least + below(most - least + 1); }
  // True with the chance of `share`, from 0 to 1. The product is exact: a double times a power of two.
  bool chance(double share) {
    return static_cast<double>(numerics::random_bits(key_, next_++)) < share * 4294967296.0;
  }

 private:
  numerics::Key key_;
  uint64_t next_ = 0;
};

}  // namespace ostro::drawn
