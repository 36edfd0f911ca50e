// LiveState: the interface to the parameters and the optimizer's arrays of a run, which are in this process,
// cut over its workers, or over several processes. A run uses its state only through this interface.
//
// One thread uses a state. After an error the state is unknown, unless the function says otherwise.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/checkpoint/async_saver.h"
#include "ostro/train/step/held_out_text.h"
#include "ostro/train/step/memory_need.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// The outcome of reading a checkpoint into a state.
struct CellsRead {
  // The reason why this checkpoint cannot be used, with the worker, if there are several; "": its state is
  // now that of the run.
  std::string unfit;
  // Fingerprint of each parameter, when it was asked for.
  std::vector<std::array<int64_t, 2>> prints;
};

// What workers that compared their results found (trainer.cross_check), in a step that was done again since.
struct Finding {
  int64_t step = 0;
  std::string text;
};

class LiveState {
 public:
  virtual ~LiveState() = default;

  // The number of steps that led to this state.
  virtual int64_t step() const = 0;

  // begin(), restore() or take_over() must be called before everything else.
  // Makes the state at step 0: parameters from the init program with this seed, the optimizer's arrays zero.
  virtual Status begin(int64_t seed) = 0;
  // Reads the state in the checkpoint's directory `path`, of this step; `prints`: computes the fingerprints
  // of its parameters, too. A damaged checkpoint is not an error, and leaves the state as it was.
  virtual Result<CellsRead> restore(const std::string& path, int64_t step, bool prints) = 0;
  // Takes the state that other processes hold already, of a run after `step` steps. Error: there is none.
  virtual Status take_over(int64_t step) = 0;

  // Does one step. `batch` has all rows of it, `scalars` are the optimizer's (optim::step_scalars). A result
  // that is not ok() leaves the state as it was.
  virtual Result<StepResult> advance(const BatchArrays& batch, const std::vector<float>& scalars) = 0;

  // What was found since the last call.
  virtual std::vector<Finding> take_findings() { return {}; }

  // Begins to save the state in the background; `saver` writes into the run's folder of checkpoints.
  virtual Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) = 0;
  // Waits for the end of the save. Saves again a checkpoint that was cut off, when that is possible. Returns
  // the checkpoint that was saved last; nothing when no save was begun, or a temporary checkpoint was lost
  // with a worker.
  virtual Result<std::optional<checkpoint::Saved>> finish_save(checkpoint::AsyncSaver& saver) {
    return saver.wait();
  }
  // True when finish_save() has begun to save again a checkpoint that was cut off. It must then be called
  // once more, when the saver has ended or when there is time to wait for it.
  virtual bool writes_again() const { return false; }

  // The loss of the held-out text that it was made with; the text must be there.
  virtual Result<HeldOutLoss> evaluate() = 0;

  // Memory and FLOPs of the leaf and update programs, for reports.
  virtual runtime::ExecutableInfo leaf_info() const = 0;
  virtual runtime::ExecutableInfo update_info() const = 0;

  // For several processes that share a run. processes(): how many hold the state. is_shared(): true when
  // another one can continue the run if this one fails. goes_elsewhere(), asked before each step: true when
  // another one continues the run from here.
  virtual int64_t processes() const { return 1; }
  virtual bool is_shared() const { return false; }
  virtual bool goes_elsewhere(const checkpoint::AsyncSaver&) { return false; }
};

// The parts from which a LiveState is made. `fs` and `engine` must outlive it; the other references need not.
struct StateParts {
  io::FileSystem& fs;
  runtime::Engine& engine;
  const TrainConfig& config;
  const CanonicalPrograms& programs;
  const std::optional<HeldOutText>& held_out;
  const std::optional<MemoryNeed>& need;  // of this process; nothing: it was not planned
  int64_t vocab = 0;
};

// Makes a state in this process, whose steps `runner` does.
Result<std::unique_ptr<LiveState>> make_local_state(const StateParts& parts,
                                                    std::unique_ptr<StepRunner> runner);

}  // namespace ostro::train
