#include "ostro/io/s3/retry.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "ostro/base/sha256.h"

namespace ostro::io {
namespace {

class SystemRetryClock final : public RetryClock {
 public:
  int64_t now_ms() override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }
  void sleep_ms(int64_t ms, std::stop_token stop) override {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, std::chrono::milliseconds(ms), [] { return false; });
  }
};

}  // namespace

RetryClock& system_retry_clock() {
  static SystemRetryClock clock;
  return clock;
}

int64_t RetryPolicy::delay_ms(int attempt, std::string_view request) const {
  int64_t delay = first_delay_ms;
  for (int i = 1; i < attempt && delay < max_delay_ms; ++i) delay *= 2;
  delay = std::min(delay, max_delay_ms);
  const Sha256Digest digest = sha256(fmt::format("{} {}", attempt, request));
  return delay / 2 + delay * digest[0] / 512;
}

}  // namespace ostro::io
