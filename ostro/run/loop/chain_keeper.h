// ChainKeeper: the chain of a run that trains, with the checkpoints that it names. It keeps the two in the
// order that resuming and verifying need: the chain always reaches as far as the checkpoints do.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/chain/chain_writer.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/checkpoint/async_saver.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/live_state.h"

namespace ostro::run {

// The two ways to save the state after a step.
enum class Saving {
  kNamed,      // permanently; the chain gets its name
  kTemporary,  // until later checkpoints replace it
};

// One thread uses a keeper. `fs` must outlive it, and so must the states that it saves.
class ChainKeeper {
 public:
  ChainKeeper(io::FileSystem& fs, const std::string& run_directory, chain::ChainWriter chain);

  const chain::Chain& chain() const { return chain_.chain(); }
  // For entries that are not those of steps (chain_writer.h).
  chain::ChainWriter& writer() { return chain_; }

  // Appends the entry of a step; `measured` is the text for the manifest of the state's checkpoint
  // (train::measured_text).
  Status append(const chain::StepEntry& entry, std::string measured);
  // From now on the leaves of steps are kept (leaf_file.h); append_leaves() must be called before append().
  void keep_leaves(chain::LeafWriter leaves) { leaves_ = std::move(leaves); }
  bool keeps_leaves() const { return leaves_.has_value(); }
  Status append_leaves(int64_t step, const std::vector<chain::LeafRecord>& leaves) {
    return leaves_->append(step, leaves);
  }

  // Begins to save the state. Errors: also those of the save before.
  Status save(train::LiveState& state, const train::TrainConfig& config, Saving how);
  // Waits for the running save, and puts its name into the chain. A save that was cut off by the loss of a
  // worker is begun again; with `waits` this waits for its end, too, otherwise the name is ready some time
  // later.
  Status finish_save(train::LiveState& state, bool waits = true);
  // True when a save has ended, and the chain does not have its name yet.
  bool name_is_ready() const { return naming_.has_value() && !saver_.running(); }
  const checkpoint::AsyncSaver& saver() const { return saver_; }
  // The step of the state that was saved last, by this keeper or before it (resumed()).
  std::optional<int64_t> last_saved() const { return last_saved_; }
  // The same, but not counting a save that is still running and would be lost if the process were killed.
  std::optional<int64_t> last_whole() const { return saver_.running() ? before_last_ : last_saved_; }
  // The checkpoint that was written last, if one was since the last call: its step, and the seconds that
  // writing it took.
  std::optional<std::pair<int64_t, double>> take_written();

  // For a run that was resumed. resumed(): from the checkpoint of this step. owe(): that the chain lacks the
  // name of a checkpoint of this step which is due; `measured` is as in append(). save_owed() saves that
  // checkpoint.
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
  int64_t taken_ = 0;  // saves that take_written() has told
  std::optional<std::string> owed_;
};

}  // namespace ostro::run
