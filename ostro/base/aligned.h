// Memory aligned for vector loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ostro {

inline constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

struct AlignedFree {
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;

// At least `bytes` bytes at a multiple of kAlignment, not initialised; large blocks ask the kernel for
// huge pages (GEMM panels walk far more memory than 4 KiB pages can map in the TLB).
// Aborts when memory is exhausted.
AlignedBytes allocate_aligned(size_t bytes);

}  // namespace ostro
