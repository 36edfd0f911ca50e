// What this process does now, as numbers that any of its threads can read: for heartbeats and for a watchdog.
// The process has one pulse. fault_point() beats it; so does whatever else moves a step on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace ostro {

struct Pulse {
  int64_t epoch = 0, step = 0;  // step: the number that it has in the chain; 0: none yet
  std::string phase = "start";
  double compute_seconds = 0, wait_seconds = 0;  // of the last step: computing, and waiting for other workers
  int64_t work = 0;                              // its share of that step: how often it came to "leaf"
  int64_t bytes_sent = 0;                        // to other workers, since the process began
  int64_t beats = 0;                             // grows whenever something happens
  // Whether it must move on: it is within a PulseWatch, and not within a PulseWait. What else it does
  // (starting, evaluating, saving) may take any time.
  bool watched = false;
};
Pulse read_pulse();

// `phase` must live for ever.
void pulse_phase(const char* phase, int64_t step);
void pulse_epoch(int64_t number);
void pulse_beat();
void pulse_sent(int64_t bytes);

// From construction to destruction this process waits for other workers.
class PulseWait {
 public:
  PulseWait();
  ~PulseWait();
  PulseWait(const PulseWait&) = delete;
  PulseWait& operator=(const PulseWait&) = delete;

 private:
  std::chrono::steady_clock::time_point begin_;
};

// From construction to destruction this process hangs if nothing moves for long.
class PulseWatch {
 public:
  PulseWatch();
  ~PulseWatch();
  PulseWatch(const PulseWatch&) = delete;
  PulseWatch& operator=(const PulseWatch&) = delete;
};

// A step, watched: its time without the waits is what it computed. One at a time.
class PulseStep {
 public:
  explicit PulseStep(int64_t number);
  ~PulseStep();
  PulseStep(const PulseStep&) = delete;
  PulseStep& operator=(const PulseStep&) = delete;

 private:
  const PulseWatch watch_;
  std::chrono::steady_clock::time_point begin_;
  int64_t waited_;
};

// The median of the last steps' times, waits included; 0 before the first.
double median_step_seconds();

}  // namespace ostro
