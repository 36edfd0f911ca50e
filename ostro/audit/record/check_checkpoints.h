// check_checkpoints: compares every checkpoint of a run, read whole, with the run's chain.
//
// The result is a verdict for each checkpoint; a damaged or forged one is no error. It only reads, and any
// thread may call it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

enum class CheckpointVerdict {
  kFine,       // the chain has its name
  kTemporary,  // the chain does not name it; its parameters have the fingerprint that the chain has
  kDamaged,    // its bytes do not have its own hashes, or its manifest cannot be read
  kForged,     // its own hashes fit, but it is not what the chain says
  kMissing,    // the chain names it, but the run directory does not have it
  kPartial,    // its parameters are fine; its moments were left out (`ostro publish --parameters_only`)
  kUnknown,    // this program cannot compare it: its model, its format, or what the chain should say of it
};
// "fine", "temporary", "damaged", "forged", "missing", "without moments", "not checked".
const char* verdict_name(CheckpointVerdict verdict);
// Returns the verdict that an error of reading a checkpoint, or of comparing it with the chain, stands for:
// kUnknown when this program does not know what it reads (kUnsupported), else `otherwise`.
CheckpointVerdict verdict_of(const Error& error, CheckpointVerdict otherwise);

struct CheckedCheckpoint {
  int64_t step = 0;
  std::string path;
  CheckpointVerdict verdict = CheckpointVerdict::kFine;
  std::string name;    // the name of its state; empty when the manifest cannot be read
  std::string detail;  // what is wrong, or what is not known
  bool fine() const {
    return verdict == CheckpointVerdict::kFine || verdict == CheckpointVerdict::kTemporary;
  }
};

// Returns true for the path of a parameter, or of the average of one that evaluation and exports use. All
// other arrays of a state are moments, which a published state may lack.
bool is_weight_array(const std::string& path);

// Returns true when the state has moments, and the folder of none of them is in the checkpoint.
bool lacks_moments(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint);

// Returns the verdicts on all checkpoints that are there or that `chain` names, by step. Those that are there
// are compared with the chain file as it is now, so that a run may go on meanwhile. Error: the files cannot
// be listed.
Result<std::vector<CheckedCheckpoint>> check_checkpoints(io::FileSystem& fs, const std::string& run_directory,
                                                         const chain::Chain& chain,
                                                         const models::ModelChoices& models);

// Completes the verdicts after a replay. `names` has the names of replayed states by step: a temporary
// checkpoint with another name is forged, and the detail of one with the same name says so. `different_step`
// is the first step at which the chain differs from the replay, or -1. From there on the chain does not say
// what a checkpoint should be, so a forged one becomes unknown.
void compare_with_replay(const std::map<int64_t, std::string>& names, int64_t different_step,
                         std::vector<CheckedCheckpoint>& checked);

}  // namespace ostro::audit
