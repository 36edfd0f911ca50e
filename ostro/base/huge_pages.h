// map_at_huge_page: anonymous memory of this process that begins at a huge page, so that the kernel can use
// such pages for it.
#pragma once

#include <cstddef>

namespace ostro {

inline constexpr size_t kHugePage = size_t{2} << 20;

// Maps `bytes` bytes, which read as zeros; `protection` as of mmap. To be freed with munmap. nullptr if the
// kernel refuses. Thread-safe.
std::byte* map_at_huge_page(size_t bytes, int protection);

}  // namespace ostro
