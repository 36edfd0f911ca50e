// UpdateRule: the interface of an optimizer: arrays that it keeps for every parameter, scalars that change
// from step to step, and a traced rule that computes new values of both parameter and arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/nn/matrix.h"
#include "ostro/optim/norm.h"
#include "ostro/optim/options.h"

namespace ostro::optim {

// A parameter that is trained.
struct Parameter {
  std::string path;  // "model/layers/attention/qkv/weight"
  Shape shape;
  nn::Matrix matrix;
  double width = 1;  // width of its model / width of the model for which the learning rate is given (muP)

  bool is_matrix() const { return !matrix.in.empty(); }
  bool is_head() const { return is_matrix() && shape.has("vocab"); }
};

// An array kept for a parameter. All are zeros before the first step.
struct StateArray {
  std::string name;  // "first_moment"
  Shape shape;
};

// Computed by the host in f64, given to the program as f32.
using Scalar = std::pair<std::string, float>;

// The array of a parameter whose values are used in its place for evaluation and export, if there is one.
inline constexpr const char* kAverage = "average";

// A constant of the f32 arithmetic, computed in f64 and rounded once.
inline float rounded(double value) { return static_cast<float>(value); }

// The inputs of an update. Arrays have the parameter's axes unless state() has another shape.
struct RuleInputs {
  Array p, g;                  // f32; g is divided by the total weight, and clipped
  std::vector<Array> state;    // in the order of UpdateRule::state
  std::vector<Array> scalars;  // in the order of UpdateRule::scalars
  Array lr;
  double weight_decay = 0;  // 0: none
  const Boxes* boxes;       // for sums over axes that workers may share
};

struct RuleResults {
  Array p;
  std::vector<Array> state;
};

// Without state of its own; thread-safe.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // The arrays kept for a parameter.
  virtual std::vector<StateArray> state(const Parameter&) const = 0;
  // The scalars of step `step` (0 is the first), beside the learning rate. The names are those of every step.
  virtual std::vector<Scalar> scalars(int64_t /*step*/, int64_t /*num_train_steps*/) const { return {}; }
  // muP: the learning rate is multiplied by Parameter::width to this power, for matrices drawn as
  // models/decoder/init_block.cc draws them (Yang et al., Tensor Programs V, 2022, table 3). The default is
  // for a rule whose steps do not depend on the size of the gradient.
  virtual double width_power(const Parameter& parameter) const { return parameter.is_matrix() ? -1 : 0; }
  // Returns the new parameter and state arrays. Sums over axes must have the same bits on any mesh
  // (docs/reference/optimizers.md): an axis that workers may share is summed over by box_sumsq and tree_sum,
  // or renamed first, which makes it whole.
  virtual RuleResults update(const Parameter& parameter, const RuleInputs& in) const = 0;
};

// The rules by their options.
std::unique_ptr<UpdateRule> make_adamw(const AdamRule& options);
std::unique_ptr<UpdateRule> make_lion(const LionRule& options);
std::unique_ptr<UpdateRule> make_sgd(const SgdRule& options);
std::unique_ptr<UpdateRule> make_adafactor(const AdafactorRule& options);
// `learning_rate`: the highest rate of the rule's parameters.
std::unique_ptr<UpdateRule> make_muon(const MuonRule& options, double learning_rate);
std::unique_ptr<UpdateRule> make_soap(const SoapRule& options);
std::unique_ptr<UpdateRule> make_shampoo(const ShampooRule& options);
std::unique_ptr<UpdateRule> make_schedule_free(const ScheduleFreeRule& options, const CommonOptions& common);

// p - lr * (u + wd * p): decoupled decay.
Array descend(const RuleInputs& in, const Array& u);
// u where it has the sign of the gradient, else 0, divided by the share of such elements (1/1000 at least),
// which is counted for every layer (Liang et al., Cautious Optimizers, 2024).
Array cautious(const Parameter& parameter, const RuleInputs& in, const Array& u);

}  // namespace ostro::optim
