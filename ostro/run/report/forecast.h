// Forecast: logs how long a run will take and how much memory it needs, as soon as its first leaf is done,
// and the progress of a long first step.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace ostro::run {

// "6.1 s", "12 min", "7 h 30 min", "3.5 days".
std::string span_text(double seconds);

// The line of the forecast: `steps` steps are left, of `leaves` leaves of `leaf_seconds` each; the peak of
// memory is `need` bytes, of `room` available ones (0: not known).
std::string forecast_text(double leaf_seconds, int64_t leaves, int64_t steps, int64_t need, int64_t room);

// Its thread looks at the progress of the first step's leaves, from construction to stop(), and logs: the
// forecast after the first leaf, and in a step that takes long, every ten seconds, the leaf that is done.
class Forecast {
 public:
  // `first`: the number of the first step of this session; `steps` are left, it among them.
  Forecast(int64_t first, int64_t steps, int64_t need, int64_t room);
  ~Forecast();
  Forecast(const Forecast&) = delete;
  Forecast& operator=(const Forecast&) = delete;

  // The first step is done. The forecast is logged if it was not yet.
  void stop();

 private:
  void watch();
  void say();

  int64_t first_, steps_, need_, room_;
  bool said_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace ostro::run
