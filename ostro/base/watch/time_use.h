// What the time of a run is spent on. The thread that trains is always at one of these uses; nothing is
// counted twice and nothing is left out. The process has one clock.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace ostro {

enum class TimeUse {
  kStep,        // steps that brought the run on
  kStart,       // from the start to the first step
  kCompile,     // of programs
  kData,        // waiting for a batch
  kCheckpoint,  // as far as training waits for it
  kEvaluation,
  kRecovery,  // from the loss of a worker until training goes on
  kLost,      // steps that were done before, and had to be done again
};
inline constexpr size_t kTimeUses = 8;
inline constexpr std::array<const char*, kTimeUses> kTimeUseNames = {
    "step", "start", "compile", "data", "checkpoint", "evaluation", "recovery", "lost"};

using TimesUsed = std::array<double, kTimeUses>;  // seconds

// Begins to count from zero, with this use, the time of the calling thread.
void restart_time(TimeUse use);
// From now on the time is spent on this. Other threads than the one that called restart_time() do nothing.
void use_time(TimeUse use);
// The use with which this count began: kStart, or kRecovery.
TimeUse first_use();
// So much of what was just spent was spent on this in truth.
void recount_time(TimeUse use, std::chrono::duration<double> time);
TimesUsed times_used();

// From construction to destruction the time is spent on `use`. Inside recovery and steps that are done again
// it does nothing: what these take is all their cost.
class TimeScope {
 public:
  explicit TimeScope(TimeUse use);
  ~TimeScope();
  TimeScope(const TimeScope&) = delete;
  TimeScope& operator=(const TimeScope&) = delete;

 private:
  bool active_ = false;
  TimeUse before_ = TimeUse::kStart;
};

}  // namespace ostro
