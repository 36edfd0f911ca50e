// inspect, run_hash: show what a run directory or a checkpoint holds, as text for people or JSON for tools.
//
// Both functions only read, so the run may continue while they do. Errors: kCorrupt for a damaged chain or
// manifest.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

// The run hash of a run directory: its chain's head, after checking the whole chain.
Result<std::string> run_hash(io::FileSystem& fs, const std::string& run_directory);

// Options of inspect(). It compares the manifests of checkpoints with the chain of their run
// (audit/record/witness.h) and reads no arrays.
struct InspectOptions {
  // The types of models that a configuration may name.
  models::ModelChoices models = models::builtin_models();
  bool unchecked = false;  // a checkpoint that is not what the chain says is shown all the same
  bool json = false;
};

struct Inspection {
  std::string text;   // or JSON; ends with a newline
  bool sound = true;  // false: a checkpoint or run.json is damaged, or a checkpoint not what the chain says
};

// The text or JSON that describes `path`. Of a run directory (it holds chain.jsonl) it shows the record, the
// chain and the checkpoints, and it names the checkpoints that are not what the chain says. Of a checkpoint
// (it holds manifest.json) it shows step, names, and the tree with shapes, axis names, counts and hashes from
// the manifest. Errors: kCorrupt for a checkpoint inside a run that is not what the chain says (unless
// `unchecked`); kNotFound when `path` is neither.
Result<Inspection> inspect(io::FileSystem& fs, const std::string& path, const InspectOptions& options);

}  // namespace ostro::audit
