// How often and after which pauses a request to a server is tried again.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

namespace ostro::io {

// Time as retries see it; tests bring their own.
class RetryClock {
 public:
  virtual ~RetryClock() = default;
  virtual int64_t now_ms() = 0;  // monotonic
  // Returns early when a stop is requested.
  virtual void sleep_ms(int64_t ms, std::stop_token stop) = 0;
};
RetryClock& system_retry_clock();

// A pause before attempt n + 1 of first_delay_ms * 2^(n - 1), at most max_delay_ms, times a factor in [0.5,
// 1) that depends on the request and n alone: many readers spread out, and one run is like the next.
struct RetryPolicy {
  int attempts = 10;  // the first one included
  int64_t first_delay_ms = 100;
  int64_t max_delay_ms = 20'000;
  int64_t max_total_ms = 300'000;  // no attempt begins later than this after the first

  // The pause after failed attempt `attempt` (from 1).
  int64_t delay_ms(int attempt, std::string_view request) const;
};

}  // namespace ostro::io
