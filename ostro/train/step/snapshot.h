// Converts a training state to the tensors of a checkpoint, and back.
#pragma once

#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/train/step/step.h"

namespace ostro::io {
class FileSystem;
}

namespace ostro::train {

// The tensors of a state: parameters at their paths ("model/..."), then "optimizer/first_moment/..." and
// "optimizer/second_moment/...". `boxes` says how each tensor is cut into cells. The tensors share the
// buffers of the state and keep them alive.
std::vector<checkpoint::Tensor> snapshot(const State& state, const std::vector<std::string>& paths,
                                         const optim::Boxes& boxes);

// Loads the newest undamaged checkpoint under `checkpoints`. `shapes` are the shapes of the parameters.
// Errors: kNotFound if there is no checkpoint; a checkpoint with other shapes names the tensor and both
// shapes.
struct RestoredState {
  State state;
  std::string path, name;  // directory of the checkpoint; name (hash) of the state
  std::string chain_head;  // head of the run's chain after that step
};
Result<RestoredState> restore_state(io::FileSystem& fs, const std::string& checkpoints,
                                    const std::vector<std::string>& paths,
                                    const std::vector<ir::Shape>& shapes);
// Loads the checkpoint in exactly this directory. `parameters_only` leaves the moments empty.
Result<RestoredState> load_state(io::FileSystem& fs, const std::string& checkpoint,
                                 const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes,
                                 bool parameters_only);

}  // namespace ostro::train
