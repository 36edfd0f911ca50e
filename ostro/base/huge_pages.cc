#include "ostro/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace ostro {

// Maps a huge page more, and gives back what stands before and behind.
std::byte* map_at_huge_page(size_t bytes, int protection) {
  void* const p = mmap(nullptr, bytes + kHugePage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(p);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(p) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
  return begin + before;
}

}  // namespace ostro
