#include "ostro/base/aligned.h"

#include <sys/mman.h>

#include <cstdlib>

#include "ostro/base/check.h"

namespace ostro {

void AlignedFree::operator()(std::byte* p) const { std::free(p); }

AlignedBytes allocate_aligned(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  OSTRO_CHECK(p != nullptr, "out of memory: {} bytes were asked for", bytes);
  if (alignment == kHugePage)
    madvise(p, rounded, MADV_HUGEPAGE);  // advice only: failure costs speed, not bits
  return AlignedBytes(static_cast<std::byte*>(p));
}

}  // namespace ostro
