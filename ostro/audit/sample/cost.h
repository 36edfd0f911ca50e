// Cost, CostMeter: the time that a computation takes on this machine.
#pragma once

#include <chrono>

namespace ostro::audit {

// Seconds.
struct Cost {
  double cpu = 0;   // of all threads of this process together
  double time = 0;  // on the clock

  Cost& operator+=(const Cost& other) {
    cpu += other.cpu;
    time += other.time;
    return *this;
  }
  friend Cost operator+(Cost a, const Cost& b) { return a += b; }
  friend Cost operator-(const Cost& a, const Cost& b) { return {a.cpu - b.cpu, a.time - b.time}; }
  friend Cost operator*(double times, const Cost& a) { return {times * a.cpu, times * a.time}; }
};

// Measures the cost of everything that this process does after the construction of the meter.
class CostMeter {
 public:
  CostMeter() : cpu_(cpu_seconds()), begin_(std::chrono::steady_clock::now()) {}
  Cost spent() const {
    return {cpu_seconds() - cpu_,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
  }

 private:
  static double cpu_seconds();
  double cpu_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace ostro::audit
