// brought_run: what a run's workers need besides the run's folder, as a copy for machines that do not have
// it: this program with the libraries beside it, the configuration, the tokenizer and the token stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ostro/cluster/ssh/bring.h"
#include "ostro/context/context.h"
#include "ostro/shell/words/args.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The options of a launcher that brings things.
struct BringOptions {
  bool on = false;
  std::optional<std::string> to;          // the folder of copies on the machines; without it kCopies
  std::optional<int64_t> most_mebibytes;  // of a token store; without it kMostOfStore
};
inline constexpr const char* kCopies = "~/.cache/ostro/copies";
inline constexpr int64_t kMostOfStore = 1024;

// Declares --bring_mib; `options` must outlive the parsing.
void take_bring_mib(Args& args, BringOptions& options);
// Error: kInvalidArgument, for a number of MiB out of range, no folder, or either of them without --bring.
Status check_bring(const BringOptions& options);
// The words of workers that run in a copy: its configuration.
std::vector<std::string> brought_words(bool amend);

struct BroughtRun {
  cluster::BroughtCopy copy;
  std::string folder, program;  // in which the workers run, and what they run, seen from that folder
};

// Makes the token stores if they are not finished, and reads all that is brought to have its SHA-256. What
// lies below the current folder is brought, and has the same relative path in the copy; other paths on disk
// must be there already. The run's folder is neither: it must be shared. Errors: those of the data; a store
// of more MiB than the option says, one that is joined of others, an initial model below the current folder
// (kInvalidArgument, with the fix).
Result<BroughtRun> brought_run(const Context& context, const train::TrainConfig& config,
                               const BringOptions& options);

}  // namespace ostro::cli
