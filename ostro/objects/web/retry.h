// RetryPolicy: the number of times a request to a server is repeated, and the pauses between.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

namespace ostro::objects {

// The clock for retries. Tests have their own.
class RetryClock {
 public:
  virtual ~RetryClock() = default;
  virtual int64_t now_ms() = 0;  // monotonic
  // Monotonic, and counts also the time in which the machine slept or its virtual machine stood still.
  virtual int64_t outside_ms() = 0;
  // Returns early when a stop is requested.
  virtual void sleep_ms(int64_t ms, std::stop_token stop) = 0;
};
// The clocks of the system. Lives as long as the process; thread-safe.
RetryClock& system_retry_clock();

// Exponential backoff: the pause before attempt n + 1 is first_delay_ms * 2^(n - 1), at most max_delay_ms,
// times a factor in [0.5, 1). The factor depends only on the request and n. So the retries of many readers
// are spread out, and every run behaves the same.
struct RetryPolicy {
  int attempts = 10;  // including the first one
  int64_t first_delay_ms = 100;
  int64_t max_delay_ms = 20'000;
  int64_t max_total_ms = 300'000;  // no attempt begins later than this after the first one

  // The pause after failed attempt `attempt` (from 1).
  int64_t delay_ms(int attempt, std::string_view request) const;
};

}  // namespace ostro::objects
