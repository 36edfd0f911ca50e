#include "ostro/base/watch/pulse.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <vector>

namespace ostro {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kSteps = 32;  // of which the slowest is taken

struct Heart {
  std::atomic<int64_t> epoch{0}, step{0}, bytes_sent{0}, bytes_between_slices{0}, beats{0}, leaves{0};
  std::atomic<bool> touched{false};  // since the last look
  std::atomic<const char*> phase{"start"};
  std::atomic<int64_t> watches{0}, waits{0};  // how many there are
  std::atomic<int64_t> waited_ns{0};          // in all
  std::mutex mutex;                           // of what follows
  double compute_seconds = 0, wait_seconds = 0;
  int64_t work = 0;
  std::vector<double> steps;  // the last ones' seconds
  size_t next = 0;
};

Heart& heart() {
  static Heart heart;
  return heart;
}

int64_t nanoseconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - begin).count();
}

}  // namespace

Pulse read_pulse() {
  Heart& h = heart();
  if (h.touched.exchange(false)) ++h.beats;
  Pulse p;
  p.epoch = h.epoch, p.step = h.step, p.phase = h.phase.load();
  p.bytes_sent = h.bytes_sent, p.bytes_between_slices = h.bytes_between_slices;
  p.beats = h.beats, p.watched = h.watches > 0 && h.waits == 0;
  const std::lock_guard lock(h.mutex);
  p.compute_seconds = h.compute_seconds, p.wait_seconds = h.wait_seconds, p.work = h.work;
  return p;
}

void pulse_phase(const char* phase, int64_t step) {
  Heart& h = heart();
  h.phase = phase;
  h.step = step;
  if (std::string_view(phase) == "leaf") ++h.leaves;
  ++h.beats;
}

void pulse_epoch(int64_t number) {
  heart().epoch = number;
  pulse_beat();
}

void pulse_beat() { ++heart().beats; }

void pulse_touch() {
  std::atomic<bool>& touched = heart().touched;
  if (!touched.load(std::memory_order_relaxed)) touched.store(true, std::memory_order_relaxed);
}

void pulse_sent(int64_t bytes) { heart().bytes_sent += bytes; }

void pulse_sent_between_slices(int64_t bytes) { heart().bytes_between_slices += bytes; }

PulseWait::PulseWait() : begin_(SteadyClock::now()) { ++heart().waits; }
PulseWait::~PulseWait() {
  heart().waited_ns += nanoseconds_since(begin_);
  pulse_beat();
  --heart().waits;
}

PulseWatch::PulseWatch() {
  pulse_beat();
  ++heart().watches;
}
PulseWatch::~PulseWatch() { --heart().watches; }

PulseStep::PulseStep(int64_t number) : begin_(SteadyClock::now()), waited_(heart().waited_ns) {
  heart().leaves = 0;
  pulse_phase("step", number);
}

PulseStep::~PulseStep() {
  Heart& h = heart();
  const double whole = static_cast<double>(nanoseconds_since(begin_)) * 1e-9;
  const double waited = static_cast<double>(h.waited_ns - waited_) * 1e-9;
  pulse_beat();
  const std::lock_guard lock(h.mutex);
  h.compute_seconds = std::max(0.0, whole - waited);
  h.wait_seconds = waited;
  h.work = h.leaves;
  if (h.steps.size() < kSteps)
    h.steps.push_back(whole);
  else
    h.steps[h.next] = whole;
  h.next = (h.next + 1) % kSteps;
}

std::optional<double> slowest_step_seconds() {
  Heart& h = heart();
  const std::lock_guard lock(h.mutex);
  if (h.steps.empty()) return std::nullopt;
  return *std::max_element(h.steps.begin(), h.steps.end());
}

}  // namespace ostro
