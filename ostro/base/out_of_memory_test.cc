#include "ostro/base/out_of_memory.h"

#include <doctest/doctest.h>

#include "ostro/base/aligned.h"

namespace ostro {
namespace {

// The sanitizers' allocators end the process themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a block that cannot be had is an exception with its size, and an error with what can be had") {
  constexpr size_t kTooMuch = size_t{1} << 62;
  CHECK_THROWS_AS(allocate_aligned(kTooMuch), OutOfMemory);
  try {
    (void)allocate_zeroed(kTooMuch);
  } catch (const std::bad_alloc& e) {
    const Error error = out_of_memory_error(e);
    CHECK(error.code() == ErrorCode::kIo);
    CHECK(error.message().find("out of memory: 4611686018427387904 bytes were asked for; ") == 0);
    CHECK(error.message().find(" GB can still be had (") != std::string::npos);
  }
  // A smaller one still can be.
  CHECK(allocate_aligned(100) != nullptr);
}
#endif

}  // namespace
}  // namespace ostro
