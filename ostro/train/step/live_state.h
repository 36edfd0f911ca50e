// LiveState: the parameters and the optimizer's arrays of a run, wherever they are: in this process, cut over
// its workers, or over several processes. Whatever a run does with its state, it does through this.
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
#include "ostro/train/step/step.h"

namespace ostro::train {

// The outcome of reading a checkpoint into a state.
struct CellsRead {
  // Why this checkpoint cannot be used, naming the worker, if there are several; "": it has been taken over.
  std::string unfit;
  // Fingerprint of each parameter, when it was asked for.
  std::vector<std::array<int64_t, 2>> prints;
};

class LiveState {
 public:
  virtual ~LiveState() = default;

  // How many steps it is after.
  virtual int64_t step() const = 0;

  // One of the first three comes before everything else.
  // The state at step 0: parameters from the init program with this seed, the optimizer's arrays zero.
  virtual Status begin(int64_t seed) = 0;
  // The state in the checkpoint's directory `path`, of this step; `prints`: with the fingerprints of its
  // parameters. A checkpoint that is damaged is not an error, and leaves the state as it was.
  virtual Result<CellsRead> restore(const std::string& path, int64_t step, bool prints) = 0;
  // The state that is there already, of a run after `step` steps. Error: there is none.
  virtual Status take_over(int64_t step) = 0;

  // Does one step. `batch` has all rows of it, `scalars` are the optimizer's (optim::step_scalars). A result
  // that is not ok() leaves the state as it was.
  virtual Result<StepResult> advance(const BatchArrays& batch, const std::vector<float>& scalars) = 0;

  // Begins to save the state in the background; `saver` writes into the run's folder of checkpoints.
  virtual Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) = 0;
  // Waits until the save has come to its end, and saves again what was cut off where that is possible.
  // Returns what was saved last. Nothing: no save was begun, or a temporary checkpoint was lost with a
  // worker.
  virtual Result<std::optional<checkpoint::Saved>> finish_save(checkpoint::AsyncSaver& saver) {
    return saver.wait();
  }
  // Whether finish_save() has begun to save again what was cut off: it is to be called once more, when the
  // saver does not run any more or whenever there is time to wait for it.
  virtual bool writes_again() const { return false; }

  // The loss of the held-out text that it was made with; the text must be there.
  virtual Result<HeldOutLoss> evaluate() = 0;

  // Memory and FLOPs of the leaf and update programs, for reports.
  virtual runtime::ExecutableInfo leaf_info() const = 0;
  virtual runtime::ExecutableInfo update_info() const = 0;

  // Where several processes share a run. How many hold the state; whether another one may go on with the run
  // when this one fails; asked before each step: whether another one goes on with it from here.
  virtual int64_t processes() const { return 1; }
  virtual bool is_shared() const { return false; }
  virtual bool goes_elsewhere(const checkpoint::AsyncSaver&) { return false; }
};

// What a home for a run's state is made from. The references need not outlive the making, but for `fs` and
// `engine`.
struct StateParts {
  io::FileSystem& fs;
  runtime::Engine& engine;
  const TrainConfig& config;
  const CanonicalPrograms& programs;
  const std::optional<HeldOutText>& held_out;
  int64_t vocab = 0;
};

// A state in this process, whose steps `runner` does.
Result<std::unique_ptr<LiveState>> make_local_state(const StateParts& parts,
                                                    std::unique_ptr<StepRunner> runner);

}  // namespace ostro::train
