// StateArrays: the names and shapes of the arrays of a training state: the parameters and the arrays of the
// optimizer. A value and pure functions.
#pragma once

#include <string>
#include <vector>

#include "ostro/train/programs/programs.h"

namespace ostro::train {

// The n parameters first, then the optimizer's arrays, in the order of the update program.
struct StateArrays {
  size_t n = 0;
  std::vector<std::string> paths;  // in a checkpoint: "model/a/b", "optimizer/first_moment/a/b"
  std::vector<ir::Shape> shapes;
  std::vector<size_t> parameter;  // the parameter that each array is, or belongs to
  bool partial = false;           // a checkpoint may have further arrays, which are not read
  bool rounded = false;           // an array that is bf16 here may be f32 in a checkpoint
  bool mapped = false;            // large arrays may be the checkpoint's files (Checkpoint::map)

  size_t size() const { return shapes.size(); }
};
// The path, in a checkpoint, of the optimizer's array `name` of a parameter.
std::string optimizer_path(const std::string& name, const std::string& parameter);
// The arrays, by parameter, whose values evaluation and export use: the parameters, or means of them
// (optim::kAverage).
std::vector<size_t> evaluated_arrays(const StateArrays& arrays);
StateArrays state_arrays(const CanonicalPrograms& programs);
// As above, before the programs are made.
StateArrays state_arrays(const TrainConfig& config, const models::ModelFunctions& model);
// The parameters alone.
StateArrays parameter_arrays(const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes);

// The parameters, by number, that hold the shares of the rows that each expert got in the last step: f32
// [..., experts], named `load` (nn/moe.h).
std::vector<size_t> expert_loads(const ParameterList& model);

// A state, or a worker's cells of one, holds its arrays in two lists: parameters, then the optimizer's. Array
// k of them; and the list that array k belongs to, if there are n parameters.
template <typename Lists>
auto& array_of(Lists& lists, size_t k) {
  const size_t n = lists.params.size();
  return k < n ? lists.params[k] : lists.optimizer[k - n];
}
template <typename Lists>
auto& list_of(Lists& lists, size_t k, size_t n) {
  return k < n ? lists.params : lists.optimizer;
}

}  // namespace ostro::train
