#include "ostro/cli/run/replay_progress.h"

#include <fmt/core.h>

#include <cstdio>

#include "ostro/chain/clock_text.h"
#include "ostro/chain/record.h"
#include "ostro/io/files/path.h"

namespace ostro::cli {
namespace {

constexpr double kShortReplay = 30;  // seconds; a shorter one needs no estimate

}  // namespace

ReplayProgress::ReplayProgress(io::FileSystem& fs, const std::string& run, bool terminal)
    : terminal_(terminal) {
  const auto record = chain::read_record(fs, io::join_path(run, chain::kRecordFile));
  if (record.ok()) recorded_ = chain::seconds_a_step(*record);
}

void ReplayProgress::begin(int64_t first, int64_t last) const {
  const double seconds = recorded_ * static_cast<double>(last - first + 1);
  if (seconds < kShortReplay) return;
  fmt::print(stderr, "replaying steps {} to {}: these took {} to train (run.json)\n", first, last,
             chain::duration_text(seconds));
}

void ReplayProgress::count(int64_t done, int64_t all) {
  what_ = "of the sample's";
  (*this)(done, 1, all);
}

void ReplayProgress::operator()(int64_t step, int64_t first, int64_t last) {
  const Clock::time_point now = Clock::now();
  if (step == first) begin_ = now;  // what is compiled for the first step is not counted
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = seconds > 0 ? static_cast<double>(step - first) / seconds : 0;
  const bool is_last = step == last;
  if (!terminal_ || (!is_last && step > first && now - shown_ < std::chrono::milliseconds(200))) return;
  shown_ = now;
  fmt::print(stderr, "\rreplayed step {} {} {} to {}", step, what_, first, last);
  if (rate > 0)
    fmt::print(stderr, ", {:.2f} steps/s, ETA {}", rate,
               chain::duration_text(static_cast<double>(last - step) / rate));
  std::fputs(is_last ? "   \n" : "   ", stderr);
}

}  // namespace ostro::cli
