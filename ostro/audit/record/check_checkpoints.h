// check_checkpoints: compares every checkpoint of a run, read whole, with the run's chain.
//
// The result is a verdict for each checkpoint; one that is damaged or forged is no error. It only reads.
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
  kTemporary,  // not due by step: what the chain has of it fits, which is a fingerprint of the parameters
  kDamaged,    // its bytes do not have its own hashes, or its manifest cannot be read
  kForged,     // its own hashes fit, but it is not what the chain says
  kMissing,    // the chain has it, the directory has not
  kPartial,    // its parameters are fine; its moments were left out (`ostro publish --parameters_only`)
  kUnknown,    // this program cannot compare it: its model, its format, or what the chain should say of it
};
// "fine", "temporary", "damaged", "forged", "missing", "without moments", "not checked".
const char* verdict_name(CheckpointVerdict verdict);
// The verdict of an error of a checkpoint's format, or of its comparison with the chain: `otherwise`, or
// kUnknown where this program only does not know what it reads.
CheckpointVerdict verdict_of(const Error& error, CheckpointVerdict otherwise);

struct CheckedCheckpoint {
  int64_t step = 0;
  std::string path;
  CheckpointVerdict verdict = CheckpointVerdict::kFine;
  std::string name;    // of its state, where the manifest can be read
  std::string detail;  // what is wrong, or what is not known
  bool fine() const {
    return verdict == CheckpointVerdict::kFine || verdict == CheckpointVerdict::kTemporary;
  }
};

// Whether an array of a state is a parameter, or the mean of one that evaluation and exports use: a published
// state may have these alone.
bool is_weight_array(const std::string& path);

// Whether all arrays but those were left out of the checkpoint: no folder of them is there.
bool lacks_moments(io::FileSystem& fs, const checkpoint::Checkpoint& checkpoint);

// All that are there and all that `chain` names, by step. What is there is compared with the chain file as it
// is now, so that a run may go on meanwhile. Errors: the files cannot be listed.
Result<std::vector<CheckedCheckpoint>> check_checkpoints(io::FileSystem& fs, const std::string& run_directory,
                                                         const chain::Chain& chain,
                                                         const models::ModelChoices& models);

// Makes up its mind about temporary ones from the names of replayed states: the same name is fine, another
// forged. Where the chain differs from the replay, `different_step` is the first such step (else -1): what
// the chain says of checkpoints from there on is not known, so they are not called forged.
void compare_with_replay(const std::map<int64_t, std::string>& names, int64_t different_step,
                         std::vector<CheckedCheckpoint>& checked);

}  // namespace ostro::audit
