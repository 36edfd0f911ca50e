// Scratch: memory that a thread keeps between products; and ceil_div.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ostro/base/aligned.h"

namespace ostro::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Memory that a thread keeps between products, grown when needed.
class Scratch {
 public:
  std::byte* get(int64_t bytes) {
    if (bytes > capacity_) {
      data_.reset();
      // Use huge pages: small pages, scattered in memory, would compete for the same sets of L2.
      if (bytes >= kSmallest) bytes = (bytes + kStep - 1) / kStep * kStep;
      data_ = allocate_aligned(static_cast<size_t>(bytes));
      capacity_ = bytes;
    }
    return data_.get();
  }

 private:
  static constexpr int64_t kSmallest = 1 << 17, kStep = 4 << 20;  // what allocate_aligned puts there
  AlignedBytes data_;
  int64_t capacity_ = 0;
};

}  // namespace ostro::kernels
