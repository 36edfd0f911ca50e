// Memory aligned for vector loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ostro {

inline constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

struct AlignedFree {
  size_t bytes = 0;  // of the block, as it was rounded
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;

// At least `bytes` bytes at a multiple of kAlignment, not initialised; large blocks ask the kernel for
// huge pages (GEMM panels walk far more memory than 4 KiB pages can map in the TLB). Thread-safe.
//
// Large blocks that are freed are kept for the next request of the same size: a training step asks for the
// same buffers every time, and fresh pages from the kernel cost more than filling them. Kept blocks that do
// not fit a new request are given back first, so that peak memory stays what the program needs. Aborts when
// memory is exhausted.
AlignedBytes allocate_aligned(size_t bytes);

// Bytes that are kept for reuse, and gives them all back.
size_t kept_bytes();
void release_kept_memory();

}  // namespace ostro
