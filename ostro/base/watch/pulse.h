// Pulse: the present activity of this process as numbers that any of its threads can read, for heartbeats and
// for a watchdog. The process has one pulse. fault_point() beats it, and so does everything else that
// advances a step. All functions are thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ostro {

// The pulse at one moment.
struct Pulse {
  int64_t epoch = 0, step = 0;  // step: the number that it has in the chain; 0: none yet
  std::string phase = "start";
  double compute_seconds = 0, wait_seconds = 0;  // of the last step: computing, and waiting for other workers
  int64_t work = 0;                              // its share of that step: how often it came to "leaf"
  int64_t bytes_sent = 0;                        // to other workers, since the process began
  int64_t bytes_between_slices = 0;              // those of them that went to other slices
  int64_t beats = 0;                             // grows whenever something happens
  // True when the pulse must beat: the process is within a PulseWatch, and not within a PulseWait. Everything
  // else (starting, evaluating, saving) may take any time.
  bool watched = false;
};
// A copy of the pulse.
Pulse read_pulse();

// Sets phase and step, and beats. `phase` must have static lifetime.
void pulse_phase(const char* phase, int64_t step);
// Sets the epoch, and beats.
void pulse_epoch(int64_t number);
// Beats: says that something has happened.
void pulse_beat();
// As pulse_beat(), for a place that threads come to all the time: they write nothing that another one reads,
// unless a thread has looked at the pulse since. Counts as one beat at the next look.
void pulse_touch();
// Adds to bytes_sent; to bytes_between_slices.
void pulse_sent(int64_t bytes);
void pulse_sent_between_slices(int64_t bytes);

// From construction to destruction, this process counts as waiting for other workers.
class PulseWait {
 public:
  PulseWait();
  ~PulseWait();
  PulseWait(const PulseWait&) = delete;
  PulseWait& operator=(const PulseWait&) = delete;

 private:
  std::chrono::steady_clock::time_point begin_;
};

// From construction to destruction, the pulse must beat: if it does not for long, this process counts as
// hung.
class PulseWatch {
 public:
  PulseWatch();
  ~PulseWatch();
  PulseWatch(const PulseWatch&) = delete;
  PulseWatch& operator=(const PulseWatch&) = delete;
};

// A PulseWatch over one training step. Its destructor records the step's time, of which PulseWaits are
// wait_seconds and the rest compute_seconds. One at a time.
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

// The longest time of the last 32 steps in seconds, waits included; nothing before the first has ended.
std::optional<double> slowest_step_seconds();

}  // namespace ostro
