// brought_run: what a run's workers need besides the run's folder, as a copy for machines that do not have
// it: this program with the libraries beside it, the configuration, the tokenizer and the token stores.
#pragma once

#include <cstdint>
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
  std::string to = "~/.cache/ostro/copies";  // the folder of copies on the machines
  int64_t most_mebibytes = 1024;             // of a token store
};

// Declares --bring_mib; `options` must outlive the parsing.
void take_bring_mib(Args& args, BringOptions& options);
// Error: kInvalidArgument, for a number of MiB out of range, or no folder.
Status check_bring(const BringOptions& options);
// The words of workers that run in a copy: its configuration.
std::vector<std::string> brought_words(bool amend);

struct BroughtRun {
  cluster::BroughtCopy copy;
  std::string folder, program;     // in which the workers run, and what they run, seen from that folder
  std::vector<std::string> words;  // for the workers (brought_words)
};

// Makes the token stores if they are not finished, and reads all that is brought to have its SHA-256. What
// lies below the current folder is brought, and has the same relative path in the copy; other paths on disk
// must be there already. The run's folder is neither: it must be shared. Errors: those of the data; a store
// of more than `most_mebibytes`, one that is joined of others, an initial model below the current folder
// (kInvalidArgument, with the fix).
Result<BroughtRun> brought_run(const Context& context, const train::TrainConfig& config,
                               const BringOptions& options, bool amend);

}  // namespace ostro::cli
