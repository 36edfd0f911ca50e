// test_size, test_seed: how much work tests do, and the seed they draw samples with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ostro {

// OSTRO_TEST_SIZE: "sample" (the default), "full", or "exhaustive", which takes hours.
enum class TestSize { kSample, kFull, kExhaustive };

// The size that OSTRO_TEST_SIZE names. Exits with status 2 when it names none.
inline TestSize test_size() {
  const char* text = std::getenv("OSTRO_TEST_SIZE");
  const std::string_view size = text == nullptr ? "" : text;
  if (size.empty() || size == "sample") return TestSize::kSample;
  if (size == "full") return TestSize::kFull;
  if (size == "exhaustive") return TestSize::kExhaustive;
  std::fprintf(stderr, "error: OSTRO_TEST_SIZE=%s: use one of sample, full, exhaustive\n", text);
  std::exit(2);
}

// The seed of samples: OSTRO_TEST_SEED, which tests/suite/seed.py sets for every test; 1 without it.
inline uint64_t test_seed() {
  const char* text = std::getenv("OSTRO_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// The number of cases for the size of this run.
template <class T>
T sized(T sample, T full, T exhaustive) {
  const TestSize size = test_size();
  return size == TestSize::kSample ? sample : size == TestSize::kFull ? full : exhaustive;
}

// Tests that inject a fault into one operation after another advance by this step: every operation, and in
// builds with sanitizers every seventh.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int64_t kFaultStep = 7;
#else
inline constexpr int64_t kFaultStep = 1;
#endif

}  // namespace ostro
