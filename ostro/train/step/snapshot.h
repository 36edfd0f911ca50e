// A training state as the tensors of a checkpoint, and back.
#pragma once

#include <vector>

#include "ostro/checkpoint/tensor.h"
#include "ostro/train/step/step.h"

namespace ostro::io {
class FileSystem;
}

namespace ostro::train {

// Parameters at their paths ("model/..."), then "optimizer/first_moment/...", "optimizer/second_moment/...";
// cells by the config's boxes. The tensors share the state's buffers and keep them alive.
std::vector<checkpoint::Tensor> snapshot(const State& state, const std::vector<std::string>& paths,
                                         const optim::Boxes& boxes);

// The newest whole checkpoint under root/checkpoints, or kNotFound. `shapes` are the parameters'; a
// checkpoint of other shapes is an error naming the tensor and both shapes.
struct RestoredState {
  State state;
  std::string path, name;  // of the checkpoint, of the state
  std::string chain_head;  // of the run, at that step
};
Result<RestoredState> restore_state(io::FileSystem& fs, const std::string& checkpoints,
                                    const std::vector<std::string>& paths,
                                    const std::vector<ir::Shape>& shapes);
// The checkpoint of exactly this directory; `parameters_only` leaves the moments empty.
Result<RestoredState> load_state(io::FileSystem& fs, const std::string& checkpoint,
                                 const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes,
                                 bool parameters_only);

}  // namespace ostro::train
