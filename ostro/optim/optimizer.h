// Optimizer: the trainer's view of the optimizer of a run: its state arrays, and the update of each
// parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/optim/update_rule.h"

namespace ostro::optim {

// A rule that an optimizer applies: its own rule, or the one of a group.
struct OwnRule {
  const GroupOptions* group = nullptr;  // null: the rule is for all parameters without another one
  std::string prefix;                   // the prefix of its scalars' names: "", "group/"
  std::unique_ptr<UpdateRule> rule;
  size_t scalars = 0;
};

// Owns its options and rules. Read-only after construction; update() and skips() are called while tracing.
class Optimizer {
 public:
  // `boxes`: the division of sums over a parameter (train/programs/programs.h).
  Optimizer(const OptimizerOptions& options, std::vector<Parameter> parameters, Boxes boxes = {});

  // One array of the state.
  struct Kept {
    std::string name;
    size_t parameter;
    Shape shape;
  };
  // The arrays of the state: all of one name, in the order of their parameters, then those of the next name.
  const std::vector<Kept>& state() const { return state_; }
  // The scalars of every step, the learning rate, "lr", first.
  const std::vector<std::string>& scalars() const { return scalars_; }
  // Returns a bool scalar, true for a step to skip: the last scalar is the limit of the loss. Empty when the
  // options skip no steps.
  Array skips(const Array& loss, const std::vector<Array>& scalars) const;

  // Returns the new value and state of parameter k: `state` are its arrays, in the order of indices_of(k).
  // `gradient` is the raw sum; inv (1 / total weight), clip and `scalars` are f32 scalars.
  RuleResults update(size_t k, const Array& p, const std::vector<Array>& state, const Array& gradient,
                     const Array& inv, const Array& clip, const std::vector<Array>& scalars) const;
  // Sets of parameters that are clipped by the norm of their own gradients: a group, or "others". No sets:
  // all parameters are clipped by one norm.
  struct ClipSet {
    std::string name;
    std::vector<size_t> parameters;
    std::optional<double> max_norm;
  };
  const std::vector<ClipSet>& clip_sets() const { return clip_sets_; }
  // The indices in state() of the arrays of parameter k.
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

// Checks the globs of weight_decay_modules and of the groups. Error: kInvalidArgument when one matches no
// parameter, or two groups have the same parameter.
Status check_groups(const CommonOptions& options, const std::vector<std::string>& paths);

// Returns whether weight decay applies to the parameter at `path`. With weight_decay_modules null: to all but
// norms, embeddings and biases. With a list of globs: to paths that match one of them (* matches any text).
bool decays(const CommonOptions& options, const std::string& path);

}  // namespace ostro::optim
