#include "ostro/base/aligned.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

namespace ostro {
namespace {

TEST_CASE("blocks are aligned, and large ones are reused by size") {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{3} << 20, size_t{9} << 20})
    CHECK(reinterpret_cast<uintptr_t>(allocate_aligned(bytes).get()) % kAlignment == 0);
  release_kept_memory();
  const std::byte* first = allocate_aligned(size_t{8} << 20).get();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  CHECK(kept_bytes() == 0);  // a kept block would hide a use after free
  return;
#endif
  CHECK(kept_bytes() == size_t{8} << 20);
  CHECK(allocate_aligned(size_t{8} << 20).get() == first);
  // Requests that do not fit what is kept give it back once it is much.
  {
    const auto big = allocate_aligned(size_t{100} << 20);
  }
  CHECK(kept_bytes() == (size_t{108} << 20));
  const auto other = allocate_aligned(size_t{10} << 20);
  CHECK(kept_bytes() == 0);
}

TEST_CASE("zeroed blocks are zero, also where an older block is used again") {
  for (size_t bytes : {size_t{100}, size_t{3} << 20, size_t{9} << 20}) {
    std::memset(allocate_aligned(bytes).get(), 1, bytes);
    for (int i = 0; i < 2; ++i) {
      const auto block = allocate_zeroed(bytes);
      CHECK(std::all_of(block.get(), block.get() + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::memset(block.get(), 1, bytes);
    }
  }
}

}  // namespace
}  // namespace ostro
