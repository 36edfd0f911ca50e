// Goodput: the share of a run's time that brought it on, and what the rest was spent on, over all of its
// sessions (docs/reference/formats/goodput.md). People read it; nothing that trains depends on it.
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
  double worker_seconds = 0;    // the same times the number of workers
  int64_t steps = 0;            // the highest step that was done
  double tokens = 0;            // of these steps, each counted once
  double updated = 0;           // Unix time in seconds
  std::optional<double> price;  // of a worker-hour, in dollars

  double total() const;
  double share() const;  // of the steps; 0: not known
  std::optional<double> dollars() const;
  std::optional<double> dollars_per_billion_tokens() const;
};

std::string goodput_json(const GoodputTotals& totals);
// Errors: kNotFound; kCorrupt names the field; a later format is kUnsupported.
Result<GoodputTotals> read_goodput(io::FileSystem& fs, const std::string& path);

// "94.2 % of 1:02:03 (recovery 2.9 %, lost 1.6 %, checkpoint 0.8 %)": the share, and the largest losses.
std::string goodput_text(const GoodputTotals& totals);

// When the job that this process belongs to began, as Unix time in seconds: the time between two sessions of
// one job is recovery, that between two jobs does not count. 0: a job of its own.
void set_job_begin(double unix_seconds);

// Counts for one session. If the file cannot be written, it logs one warning; that is no error.
class Goodput {
 public:
  // Goes on from the file, and from the chain, if there is one, where that has more steps.
  Goodput(io::FileSystem& fs, const std::string& run_directory, const chain::Chain* chain,
          std::optional<double> price);

  void set_workers(int64_t workers);
  // Around each step; `step` is its number in the chain. `tokens`: that had a loss.
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
