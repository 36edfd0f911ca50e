// How much work the long tests do.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ostro {

// Whether tests labelled slow do all their work (an hour or more) instead of a sample: OSTRO_EXHAUSTIVE=1.
inline bool exhaustive_tests() {
  const char* text = std::getenv("OSTRO_EXHAUSTIVE");
  return text != nullptr && *text != '\0';
}

// Tests that inject a fault at every operation step through the operations with this stride. Builds with
// sanitizers are slow, so they take every seventh operation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kFaultStep = 7;
#else
inline constexpr int64_t kFaultStep = 1;
#endif

}  // namespace ostro
