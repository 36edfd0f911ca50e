// allocate_aligned: host memory aligned for vector loads, with reuse of large blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ostro {

inline constexpr size_t kAlignment = 64;  // one cache line, one AVX-512 register

// The deleter of AlignedBytes. Thread-safe: a block may be freed on another thread than the one that made it.
struct AlignedFree {
  size_t bytes = 0;  // size of the block after rounding
  void operator()(std::byte* p) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;

// Allocates at least `bytes` bytes, aligned to kAlignment and not initialised. Large blocks ask the kernel
// for huge pages: the panels of matrix products cover much more memory than the TLB can map with 4 KiB pages.
// Thread-safe. Throws OutOfMemory (out_of_memory.h) when memory is exhausted.
//
// Large blocks that are freed are kept for the next request of the same size. A training step asks for the
// same sizes every time, and getting fresh pages from the kernel costs more than filling them. If no kept
// block fits a new request and more than kKeptUnasked are kept, all of them are returned to the kernel first.
// This keeps peak memory low.
inline constexpr size_t kKeptUnasked = size_t{64} << 20;
AlignedBytes allocate_aligned(size_t bytes);

// Like allocate_aligned, but all bits are zero. Small blocks and reused blocks are filled here. New large
// blocks are not: the kernel gives zero pages when a page is first touched, and that happens in the threads
// that work on the block.
AlignedBytes allocate_zeroed(size_t bytes);

// The number of bytes that are kept for reuse. release_kept_memory() returns them to the kernel.
size_t kept_bytes();
void release_kept_memory();

}  // namespace ostro
