// ChainKeeper: the chain of a run that trains, with the checkpoints that it names. It keeps the two in the
// order that resuming and verifying need: the chain always reaches as far as the checkpoints do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/checkpoint/async_saver.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/live_state.h"

namespace ostro::run {

// How the state after a step is saved.
enum class Saving {
  kNamed,      // for good; the chain gets its name
  kTemporary,  // until a later one is there
};

// One thread uses a keeper. `fs` must outlive it, and so must the states that it saves.
class ChainKeeper {
 public:
  ChainKeeper(io::FileSystem& fs, const std::string& run_directory, chain::ChainWriter chain);

  const chain::Chain& chain() const { return chain_.chain(); }
  // Entries of the run's own kind (chain_writer.h).
  chain::ChainWriter& writer() { return chain_; }

  // The entry of a step; `measured` is what its state's checkpoint says of it (train::measured_text).
  Status append(const chain::StepEntry& entry, std::string measured);
  // From here on the leaves of steps are kept (leaf_file.h): append_leaves() comes before append().
  void keep_leaves(chain::LeafWriter leaves) { leaves_ = std::move(leaves); }
  bool keeps_leaves() const { return leaves_.has_value(); }
  Status append_leaves(int64_t step, const std::vector<chain::LeafRecord>& leaves) {
    return leaves_->append(step, leaves);
  }

  // Begins to save the state. Errors: of the save before, too.
  Status save(train::LiveState& state, const train::TrainConfig& config, Saving how);
  // Waits for the running save, and gives the chain its name. One that was cut off by the loss of a worker is
  // written again; `waits`: until that has ended, too, else the name is ready some time later.
  Status finish_save(train::LiveState& state, bool waits = true);
  // Whether a save has come to its end, and the chain does not have its name yet.
  bool name_is_ready() const { return naming_.has_value() && !saver_.running(); }
  const checkpoint::AsyncSaver& saver() const { return saver_; }
  // The step of the state that was saved last, by this keeper or before it (resumed()).
  std::optional<int64_t> last_saved() const { return last_saved_; }
  // The same, without a save that is still running: a kill would lose that one.
  std::optional<int64_t> last_whole() const { return saver_.running() ? before_last_ : last_saved_; }

  // Of a run that goes on: the checkpoint that it came from; a checkpoint of its step that is due and that
  // the chain lacks, with what its manifest says of the step.
  void resumed(int64_t step) { last_saved_ = step; }
  void owe(std::string measured) { owed_ = std::move(measured); }
  Status save_owed(train::LiveState& state, const train::TrainConfig& config);

 private:
  chain::ChainWriter chain_;
  std::optional<chain::LeafWriter> leaves_;
  checkpoint::AsyncSaver saver_;
  std::string measured_;           // of the last step, for the manifest
  std::optional<int64_t> naming_;  // step of the running save whose name goes into the chain
  std::optional<int64_t> last_saved_, before_last_;
  std::optional<std::string> owed_;
};

}  // namespace ostro::run
