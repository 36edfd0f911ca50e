// snapshot, load_state: convert a training state to the tensors of a checkpoint, and back. Any thread may
// call, while none changes the state.
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

// Returns the parameters at their paths ("model/..."), then the optimizer's arrays
// ("optimizer/first_moment/..."), with cells by the config's boxes. The tensors share the state's buffers and
// keep them alive; arrays in another memory than the host's are copied to the host. Errors: those of copying.
Result<std::vector<checkpoint::Tensor>> snapshot(const State& state, const StateArrays& arrays,
                                                 const optim::Boxes& boxes);

// True when the arrays can stay where they are, on a device, while steps go on: when there is room for new
// ones beside those that are there now, and for the rest of what the run was planned to take of the memory
// in all, `planned` bytes (MemoryNeed::room). Nothing that was in use so far tells how much that is: the
// first step, a larger batch or an evaluation may take more.
bool fits_beside(const State& state, const runtime::Memory& memory, int64_t planned);
// The same tensors, copied to the host by the function that is returned, which one other thread calls once
// while this one goes on with steps. Until an array is copied its buffer is held, so no program overwrites
// it. The bytes are those of now. Passes the failpoint "device_copy" before each array.
Result<std::function<Result<std::vector<checkpoint::Tensor>>()>> snapshot_beside(const State& state,
                                                                                 const StateArrays& arrays,
                                                                                 const optim::Boxes& boxes,
                                                                                 runtime::Memory& memory);

// The specs of the tensors that snapshot() makes of a state with these arrays.
std::vector<checkpoint::TensorSpec> state_tensors(const StateArrays& arrays, const optim::Boxes& boxes);
// Checks that a checkpoint has the tensors of a state with these arrays. Error: kInvalidArgument, with the
// tensor and both types.
Status check_tensors(const checkpoint::Manifest& manifest, const StateArrays& arrays,
                     const std::string& where);

// The bytes of the parameter at this place of a manifest's tensors.
using ParameterBytes = std::function<Result<std::span<const std::byte>>(size_t tensor)>;

// Checks by facts about a state that its checkpoint does not have (audit/record/witness.h); either may be
// left out.
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
  std::string path, name;  // the path of the checkpoint, and the name of the state
};
// Reads the checkpoint in the directory `checkpoint`. When `arrays` are partial, only these are read; when
// they are rounded, f32 ones are rounded (numerics.md N1) cell by cell, so that memory never holds the
// others, and checks.parameters cannot ask for them; when they may be mapped, large ones are the files
// themselves where that is possible. Passes the failpoint "resume" before each tensor.
// Errors: those of Checkpoint, check_tensors and `checks`.
Result<RestoredState> load_state(io::FileSystem& fs, const std::string& checkpoint, const StateArrays& arrays,
                                 const StateChecks& checks);

}  // namespace ostro::train
