// TimeUse: divides the time of a run into uses. The thread that trains is always at one of them; nothing is
// counted twice and nothing is left out. The process has one clock. All functions are thread-safe; only those
// of the thread that called restart_time() have an effect.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace ostro {

enum class TimeUse {
  kStep,        // steps that advanced the run
  kStart,       // from the start to the first step
  kCompile,     // of programs
  kData,        // waiting for a batch
  kCheckpoint,  // as far as training waits for it
  kEvaluation,
  kRecovery,  // from the loss of a worker until training continues
  kLost,      // steps that were done before, and had to be done again
};
inline constexpr size_t kTimeUses = 8;
inline constexpr std::array<const char*, kTimeUses> kTimeUseNames = {
    "step", "start", "compile", "data", "checkpoint", "evaluation", "recovery", "lost"};

using TimesUsed = std::array<double, kTimeUses>;  // seconds

// Begins to count the time of the calling thread from zero, with this use.
void restart_time(TimeUse use);
// Counts the time from now on as this use.
void use_time(TimeUse use);
// The use with which this count began: kStart, or kRecovery.
TimeUse first_use();
// Moves `time` from the present use to `use`, for time whose use is known only afterwards.
void recount_time(TimeUse use, std::chrono::duration<double> time);
// The seconds of each use until now.
TimesUsed times_used();

// Counts the time from construction to destruction as `use`. During recovery and repeated steps (kLost) only
// a scope of recovery has an effect: all other time within them counts as their cost.
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
