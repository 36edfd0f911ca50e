// History: the numbers of a run by name and step: losses from its chain, everything else from metrics.jsonl.
// A value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"
#include "ostro/page/numbers/bins.h"

namespace ostro::page {

inline constexpr const char* kTrainLoss = "train/loss";

struct History {
  int64_t first_step = 1, last_step = 0;  // of the chain; last < first when no step was done
  double tokens = 0;                      // tokens with a loss, over all steps of the chain
  std::map<std::string, Bins> metrics;    // has train/loss, from the chain, when a step was done
  Bins step_tokens{0};                    // tokens with a loss, by step, from the chain
  bool has_metrics = false;               // there is a metrics.jsonl
  int64_t unreadable = 0;                 // lines of it that were left out
};

// A point of another horizontal axis than that of steps: the amount (tokens, seconds) that was reached after
// `step` steps.
struct Reached {
  int64_t step = 0;
  double amount = 0;
};
// The sums of all values up to the end of each bin, from {first step - 1, 0} on. Empty when `each` lacks the
// value of a step from `first_step` to `last_step`.
std::vector<Reached> sums_by_step(const Bins& each, int64_t first_step, int64_t last_step);

// The numbers of the chain alone. `bins` is the limit of Bins for every name; a quarter of it for
// eval/COMPONENT/...
History chain_history(const chain::Chain& chain, size_t bins);

// The numbers of the chain and of metrics.jsonl, without those of steps that the chain does not have. Error:
// metrics.jsonl cannot be read.
Result<History> read_history(io::FileSystem& fs, const std::string& run_directory, const chain::Chain& chain,
                             size_t bins);

// That of a run directory, or of its chain alone where metrics.jsonl cannot be read; empty without a chain,
// as of a run that waits for its workers.
History history_of(io::FileSystem& fs, const std::string& run_directory, size_t bins);

// The names of the metrics that `wanted` stands for: the one of this name, or all that end in "/wanted".
// Error: there is none; it lists those that exist.
Result<std::vector<std::string>> find_metrics(const History& history, const std::string& wanted);

}  // namespace ostro::page
