// The optimizer of a run, as the trainer sees it: which arrays it keeps, and the update of each parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/optim/update_rule.h"

namespace ostro::optim {

// A rule of an optimizer: its own, then those that groups have in place of it.
struct OwnRule {
  const GroupOptions* group = nullptr;  // null: of all parameters that have no other
  std::string prefix;                   // of its scalars' names: "", "group/"
  std::unique_ptr<UpdateRule> rule;
  size_t scalars = 0;
};

class Optimizer {
 public:
  // `boxes`: how sums over a parameter are cut (train/programs/programs.h).
  Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters, Boxes boxes = {});

  // One array of the state.
  struct Kept {
    std::string name;
    size_t parameter;
    Shape shape;
  };
  // All arrays of a name, in the order of their parameters, then those of the next name.
  const std::vector<Kept>& state() const { return state_; }
  // The scalars of every step, the learning rate, "lr", first.
  const std::vector<std::string>& scalars() const { return scalars_; }
  // Whether this is a step to skip: the last scalar is the limit of the loss. Empty: none ever is.
  Array skips(const Array& loss, const std::vector<Array>& scalars) const;

  // The update of parameter k: `state` are its arrays, as indices_of(k) has them. `gradient` is the raw sum;
  // inv (1 / total weight), clip and `scalars` are f32 scalars.
  RuleResults update(size_t k, const Array& p, const std::vector<Array>& state, const Array& gradient,
                     const Array& inv, const Array& clip, const std::vector<Array>& scalars) const;
  // Parameters that are clipped by the norm of their own gradients: a group, or "others". Empty: all by one
  // norm.
  struct ClipSet {
    std::string name;
    std::vector<size_t> parameters;
    std::optional<double> max_norm;
  };
  const std::vector<ClipSet>& clip_sets() const { return clip_sets_; }
  // Where the arrays of parameter k are in state().
  const std::vector<size_t>& indices_of(size_t k) const { return indices_[k]; }

 private:
  OptimizerOptions options_;
  std::vector<Parameter> parameters_;
  Boxes boxes_;
  std::vector<OwnRule> rules_;
  std::vector<const GroupOptions*> group_;  // of each parameter; null: none
  std::vector<size_t> rule_;                // likewise
  std::vector<ClipSet> clip_sets_;
  std::vector<Kept> state_;
  std::vector<std::vector<size_t>> indices_;
  std::vector<std::string> scalars_;
};

// The values of Optimizer::scalars() in step `step` (0 is the first). `losses` are those of the steps before
// it, in order, skip_window at most; only skip_bad_steps needs them.
std::vector<float> step_scalars(const OptimizerOptions& options, int64_t step, int64_t num_train_steps,
                                const std::vector<double>& losses = {});

// An error when weight_decay_modules or a group has a glob that matches no parameter, or two groups have the
// same one.
Status check_groups(const CommonOptions& options, const std::vector<std::string>& paths);

// Does weight decay apply to the parameter at `path`? weight_decay_modules is null: to all but norms,
// embeddings and biases. It is a list of globs: to paths that match one of them (* matches any text).
bool decays(const CommonOptions& options, const std::string& path);

}  // namespace ostro::optim
