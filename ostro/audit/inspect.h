// inspect, run_hash: show what a run directory or a checkpoint holds, as text for people or JSON for tools.
//
// They only read, so a run may go on meanwhile. A damaged chain or manifest is kCorrupt.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

// The run hash of a run directory: its chain's head, after checking the whole chain.
Result<std::string> run_hash(io::FileSystem& fs, const std::string& run_directory);

// How a manifest is compared with the chain of its run (audit/witness.h); the arrays are not read.
struct InspectOptions {
  models::ModelChoices models = models::builtin_models();
  bool unchecked = false;  // a checkpoint that is not what the chain says is shown all the same
  bool json = false;
};

struct Inspection {
  std::string text;   // or JSON; ends with a newline
  bool sound = true;  // false: a checkpoint or run.json is damaged, or a checkpoint not what the chain says
};

// A run directory (it holds chain.jsonl): record, chain, checkpoints; those that are not what the chain says
// are named. A checkpoint (it holds manifest.json): step, names, tree with shapes, axis names, counts and
// hashes as the manifest has them. Inside a run it must be what the chain says. Anything else is
// ErrorCode::kNotFound.
Result<Inspection> inspect(io::FileSystem& fs, const std::string& path, const InspectOptions& options);

}  // namespace ostro::audit
