// The arrays of a training state: the parameters, and what the optimizer keeps for them.
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
  std::vector<size_t> parameter;  // which one each is, or is kept for
  bool partial = false;           // a checkpoint may have others, which nobody asks for

  size_t size() const { return shapes.size(); }
};
// The path, in a checkpoint, of what is kept for a parameter.
std::string kept_path(const std::string& name, const std::string& parameter);
// The arrays, by parameter, whose values evaluation and export use: the parameters, or means of them
// (optim::kAverage).
std::vector<size_t> evaluated_arrays(const StateArrays& arrays);
StateArrays state_arrays(const CanonicalPrograms& programs);
// The same before the programs are made.
StateArrays state_arrays(const TrainConfig& config, const models::ModelFunctions& model);
// The parameters alone.
StateArrays parameter_arrays(const std::vector<std::string>& paths, const std::vector<ir::Shape>& shapes);

// Where the update program has what beside them. Needs its result_names.
struct UpdateLayout {
  size_t n = 0;        // parameters
  size_t trained = 0;  // of them: the first ones; so many gradients there are
  size_t kept = 0;     // arrays of the optimizer
  size_t scalars = 0;  // of the optimizer
  size_t norms = 0;    // of sets of parameters that are clipped by themselves

  size_t gradients() const { return n + kept; }           // of its inputs
  size_t loss_sum() const { return n + kept + trained; }  // then the weight, then the scalars
  size_t first_scalar() const { return loss_sum() + 2; }
  size_t loss() const { return n + kept; }  // of its results; then the norm and ok
  size_t norm(size_t set) const { return n + kept + 3 + set; }
  size_t prints() const { return n + kept + 3 + norms; }
};
UpdateLayout update_layout(const CanonicalPrograms& programs);

// The parameters, by number, that hold the shares of the rows that each expert got in the last step: f32
// [..., experts], named `load` (nn/moe.h).
std::vector<size_t> expert_loads(const ir::Program& update);

// A state, or a worker's cells of one, holds its arrays in two lists: parameters, then what the optimizer
// keeps. Array k of them; and the list that array k belongs to, if there are n parameters.
template <typename Lists>
auto& array_of(Lists& lists, size_t k) {
  const size_t n = lists.params.size();
  return k < n ? lists.params[k] : lists.kept[k - n];
}
template <typename Lists>
auto& list_of(Lists& lists, size_t k, size_t n) {
  return k < n ? lists.params : lists.kept;
}

}  // namespace ostro::train
