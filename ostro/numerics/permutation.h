// Permutation: a keyed bijection on [0, n) that is computed, not stored; it gives the order of the data
// (docs/spec/numerics.md, N12).
#pragma once

#include <cstdint>
#include <span>

#include "ostro/numerics/threefry.h"

namespace ostro::numerics {

// A balanced Feistel network of kRounds rounds over 2h bits, the smallest h >= 1 with 4^h >= n, applied again
// until the value is below n (fewer than 4 times on average). Threefry is the round function. 1 <= n <= 2^62.
// A value; calls are pure and thread-safe.
class Permutation {
 public:
  static constexpr uint32_t kRounds = 8;

  Permutation(Key key, int64_t n);

  int64_t size() const { return n_; }
  // The image of index i in [0, n).
  int64_t operator()(int64_t i) const;
  // Replaces each index by its image. Faster than one call per index: several are computed at a time.
  void map(std::span<int64_t> indices) const;
  // The index whose image is j: inverse((*this)(i)) == i.
  int64_t inverse(int64_t j) const;

 private:
  uint64_t encrypt(uint64_t x) const;
  uint64_t decrypt(uint64_t x) const;
  uint32_t round(uint32_t number, uint32_t half) const;

  Key key_;
  int64_t n_;
  int half_bits_;
  uint32_t mask_;
};

}  // namespace ostro::numerics
