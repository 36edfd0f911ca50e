// How much tests do where everything takes long.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace ostro {

// Tests labelled slow: a sample, or with OSTRO_EXHAUSTIVE=1 everything (an hour or more).
inline bool exhaustive_tests() {
  const char* text = std::getenv("OSTRO_EXHAUSTIVE");
  return text != nullptr && *text != '\0';
}

// Tests with a fault at every operation: every one of them, in builds with sanitizers every seventh.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kFaultStep = 7;
#else
inline constexpr int64_t kFaultStep = 1;
#endif

}  // namespace ostro
