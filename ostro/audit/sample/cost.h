// Cost, CostMeter: what a computation takes of this machine.
#pragma once

#include <chrono>

namespace ostro::audit {

// In seconds.
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

// What this process takes from the meter's construction on.
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
