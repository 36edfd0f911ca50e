// Snapshot: a training state as the tensors of a checkpoint, and back.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ostro/checkpoint/manifest.h"
#include "ostro/train/step/step.h"

namespace ostro::io {
class FileSystem;
}

namespace ostro::train {

// Parameters at their paths ("model/..."), then the optimizer's arrays ("optimizer/first_moment/..."); cells
// by the config's boxes. The tensors share the state's buffers and keep them alive; what is in another memory
// than the host's is copied to it.
Result<std::vector<checkpoint::Tensor>> snapshot(const State& state, const StateArrays& arrays,
                                                 const optim::Boxes& boxes);

// The tensors of a state of these arrays, as snapshot() has them.
std::vector<checkpoint::TensorSpec> state_tensors(const StateArrays& arrays, const optim::Boxes& boxes);
// Refuses a checkpoint that has other tensors than a state of these arrays: names the tensor and both types.
Status check_tensors(const checkpoint::Manifest& manifest, const StateArrays& arrays,
                     const std::string& where);

// The bytes of the parameter at this place of a manifest's tensors.
using ParameterBytes = std::function<Result<std::span<const std::byte>>(size_t tensor)>;

// What a caller knows of a state that its checkpoint alone does not say (audit/record/witness.h); either may
// be left out.
struct StateChecks {
  // Asked before tensors are read. An error of the Result is final, one of the Status refuses this
  // checkpoint.
  std::function<Result<Status>(const checkpoint::Manifest&, const std::string& path)> manifest;
  // Asked when they have been read.
  std::function<Status(const checkpoint::Manifest&, const std::string& path, const ParameterBytes&)>
      parameters;
};

struct RestoredState {
  State state;
  std::string path, name;  // of the checkpoint, of the state
};
// The checkpoint of exactly this directory. Passes the failpoint "resume" before each tensor.
// Of `arrays` that are partial only these are read.
Result<RestoredState> load_state(io::FileSystem& fs, const std::string& checkpoint, const StateArrays& arrays,
                                 const StateChecks& checks);

}  // namespace ostro::train
