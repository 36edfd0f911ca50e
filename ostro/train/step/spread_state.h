// A state of which every process of a group holds its own cells: what a run does with it, without bringing it
// together in one place.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "ostro/checkpoint/async_saver.h"
#include "ostro/train/step/held_out_text.h"

namespace ostro::train {

// What all workers know when they have read a checkpoint together.
struct CellsRead {
  std::string
      unfit;  // why this checkpoint cannot be used, naming the worker; "": all have adopted their cells
  // Fingerprint of each parameter, when it was asked for.
  std::vector<std::array<int64_t, 2>> prints;
};

// Each function is called at the leader and has its followers do the same. An error leaves the cells unknown.
class SpreadState {
 public:
  virtual ~SpreadState() = default;
  // The state at step 0: parameters from the init program, moments zero.
  virtual Status begin(int64_t seed) = 0;
  // The state in the checkpoint's directory `path`, of this step. What is damaged is not an error.
  virtual Result<CellsRead> restore(io::FileSystem& fs, const std::string& path, int64_t step,
                                    bool prints) = 0;
  // Begins to save the state below `root`; every worker writes its own cells in the background. The saver
  // tells when all have done so.
  virtual Status save(io::FileSystem& fs, const std::string& root, const checkpoint::Info& info,
                      checkpoint::AsyncSaver& saver) = 0;
  // When a save has failed because a worker was lost: the workers that are left save what they still have of
  // that state. False: some cell of it is nowhere any more.
  virtual Result<bool> save_again(io::FileSystem& fs, const std::string& root,
                                  checkpoint::AsyncSaver& saver) = 0;
  // The losses of all batches of the text. `program` is make_eval_program's.
  virtual Result<std::vector<BatchLoss>> evaluate(const HeldOutText& text, const ir::Program& program) = 0;
};

}  // namespace ostro::train
