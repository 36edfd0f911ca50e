// Goodput: the share of a run's time that advanced it, and the uses of the rest, over all of its sessions
// (docs/reference/formats/goodput.md). It is for people; training does not depend on it.
#pragma once

#include <optional>
#include <string>

#include "ostro/base/watch/time_use.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"

namespace ostro::run {

inline constexpr const char* kGoodputFile = "goodput.json";

struct GoodputTotals {
  TimesUsed seconds{};
  double worker_seconds = 0;    // the sum of these seconds, each times the number of workers
  int64_t steps = 0;            // the highest step that was done
  double tokens = 0;            // of these steps, each counted once
  double updated = 0;           // Unix time in seconds
  std::optional<double> price;  // of a worker-hour, in dollars

  double total() const;
  double share() const;  // the share of steps that advanced the run; 0: not known
  std::optional<double> dollars() const;
  std::optional<double> dollars_per_billion_tokens() const;
};

std::string goodput_json(const GoodputTotals& totals);
// Reads the file. Errors: kNotFound; kCorrupt, with the field; kUnsupported for a later format.
Result<GoodputTotals> read_goodput(io::FileSystem& fs, const std::string& path);

// "94.2 % of 1:02:03 (recovery 2.9 %, lost 1.6 %, checkpoint 0.8 %)": the share, and the largest losses.
std::string goodput_text(const GoodputTotals& totals);

// Sets the Unix time, in seconds, at which the job of this process began. The time between two sessions of
// one job counts as recovery; that between two jobs does not count. 0: the process is a job of its own.
void set_job_begin(double unix_seconds);

// Counts for one session. If the file cannot be written, it logs one warning; that is no error.
class Goodput {
 public:
  // Continues from the file, or from the chain, if there is one and it has more steps.
  Goodput(io::FileSystem& fs, const std::string& run_directory, const chain::Chain* chain,
          std::optional<double> price);

  void set_workers(int64_t workers);
  // Call them around each step; `step` is its number in the chain. `tokens` is the number of tokens with a
  // loss.
  void begin_step(int64_t step);
  void end_step(int64_t step, double tokens);
  // Writes the file if a second has passed, or `now`.
  void write(bool now);

  GoodputTotals totals() const;
  TimesUsed session() const { return times_used(); }

 private:
  void settle_workers();

  io::FileSystem& fs_;
  const std::string path_;
  GoodputTotals before_;  // all other sessions
  int64_t workers_ = 1;
  double settled_ = 0, worker_seconds_ = 0;  // of this session, up to settled_ seconds of it
  double written_ = -1;                      // seconds of the session; the first step is written at once
  bool failed_ = false;
};

}  // namespace ostro::run
