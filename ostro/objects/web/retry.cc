#include "ostro/objects/web/retry.h"

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "ostro/base/sha256.h"

namespace ostro::objects {
namespace {

class SystemRetryClock final : public RetryClock {
 public:
  int64_t now_ms() override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  }
  // CLOCK_BOOTTIME counts sleep. A virtual machine that stood still learns of it from its wall clock, which
  // is then put forward.
  int64_t outside_ms() override {
    const std::lock_guard lock(mutex_);
    const int64_t boot = read_ns(CLOCK_BOOTTIME), wall = read_ns(CLOCK_REALTIME);
    if (boot_ != 0) passed_ += std::max({boot - boot_, wall - wall_, int64_t{0}});
    boot_ = boot, wall_ = wall;
    return passed_ / 1'000'000;
  }
  void sleep_ms(int64_t ms, std::stop_token stop) override {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, std::chrono::milliseconds(ms), [] { return false; });
  }

 private:
  static int64_t read_ns(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  std::mutex mutex_;
  int64_t boot_ = 0, wall_ = 0, passed_ = 0;  // ns; the readings of the last call, and the sum
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

}  // namespace ostro::objects
