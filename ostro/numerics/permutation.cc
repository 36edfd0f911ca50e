#include "ostro/numerics/permutation.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "ostro/base/check.h"

namespace ostro::numerics {

Permutation::Permutation(Key key, int64_t n) : key_(key), n_(n) {
  OSTRO_CHECK(n >= 1 && n <= int64_t{1} << 62, "a permutation of {} elements", n);
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(static_cast<uint64_t>(n) - 1)) + 1) / 2);
  mask_ = static_cast<uint32_t>((uint64_t{1} << half_bits_) - 1);
}

uint32_t Permutation::round(uint32_t number, uint32_t half) const {
  const Key block = threefry2x32(key_, number, half);
  return (block.word0 ^ block.word1) & mask_;
}

uint64_t Permutation::encrypt(uint64_t x) const {
  uint32_t left = static_cast<uint32_t>(x >> half_bits_);
  uint32_t right = static_cast<uint32_t>(x) & mask_;
  for (uint32_t number = 0; number < kRounds; ++number) {
    left ^= round(number, right);
    std::swap(left, right);
  }
  return (static_cast<uint64_t>(left) << half_bits_) | right;
}

uint64_t Permutation::decrypt(uint64_t x) const {
  uint32_t left = static_cast<uint32_t>(x >> half_bits_);
  uint32_t right = static_cast<uint32_t>(x) & mask_;
  for (uint32_t number = kRounds; number-- > 0;) {
    std::swap(left, right);
    left ^= round(number, right);
  }
  return (static_cast<uint64_t>(left) << half_bits_) | right;
}

int64_t Permutation::operator()(int64_t i) const {
  OSTRO_CHECK(i >= 0 && i < n_, "index {} of a permutation of {} elements", i, n_);
  uint64_t x = static_cast<uint64_t>(i);
  do {
    x = encrypt(x);
  } while (x >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(x);
}

// The network on several values at a time, in the lanes of a vector. Values that are still at or above n go
// through it again, together.
void Permutation::map(std::span<int64_t> indices) const {
  using Words = uint32_t __attribute__((vector_size(32)));
  constexpr size_t kLanes = 8;
  for (const int64_t i : indices)
    OSTRO_CHECK(i >= 0 && i < n_, "index {} of a permutation of {} elements", i, n_);
  std::vector<size_t> walking(indices.size());
  std::iota(walking.begin(), walking.end(), size_t{0});
  while (!walking.empty()) {
    size_t left_over = 0;
    for (size_t begin = 0; begin < walking.size(); begin += kLanes) {
      const size_t lanes = std::min(kLanes, walking.size() - begin);
      Words left{}, right{};
      for (size_t lane = 0; lane < lanes; ++lane) {
        const auto x = static_cast<uint64_t>(indices[walking[begin + lane]]);
        left[lane] = static_cast<uint32_t>(x >> half_bits_);
        right[lane] = static_cast<uint32_t>(x) & mask_;
      }
      for (uint32_t number = 0; number < kRounds; ++number) {
        Words x0 = number - Words{}, x1 = right;
        threefry_rounds(key_, x0, x1);
        const Words next = left ^ ((x0 ^ x1) & mask_);
        left = right;
        right = next;
      }
      for (size_t lane = 0; lane < lanes; ++lane) {
        const uint64_t x = (static_cast<uint64_t>(left[lane]) << half_bits_) | right[lane];
        const size_t at = walking[begin + lane];
        indices[at] = static_cast<int64_t>(x);
        if (x >= static_cast<uint64_t>(n_)) walking[left_over++] = at;
      }
    }
    walking.resize(left_over);
  }
}

int64_t Permutation::inverse(int64_t j) const {
  OSTRO_CHECK(j >= 0 && j < n_, "index {} of a permutation of {} elements", j, n_);
  uint64_t x = static_cast<uint64_t>(j);
  do {
    x = decrypt(x);
  } while (x >= static_cast<uint64_t>(n_));
  return static_cast<int64_t>(x);
}

}  // namespace ostro::numerics
