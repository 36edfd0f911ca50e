// Factors: Shampoo's two factors of a hidden matrix, the means of G G^T and of G^T G, and the bases in which
// they are diagonal. FactoredRule: the common part of SOAP and Shampoo, which use them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/optim/matrix_parts.h"
#include "ostro/optim/rule_options.h"

namespace ostro::optim {

// A value; its functions are called while tracing.
class Factors {
 public:
  // A parameter that is no hidden matrix has no factors. A side longer than `largest` has no factor; its
  // basis is the identity.
  Factors(const Parameter& parameter, int64_t largest);

  // A side of a map that has a factor.
  struct One {
    size_t part;  // of MatrixParts
    std::string axis,
        far;  // its axis of the matrix, and the other one; a factor is [stack..., axis, matrix_other]
  };
  const std::vector<One>& all() const { return all_; }
  // Two arrays for each: its factor, and its basis.
  std::vector<StateArray> state() const;

  // The basis of each factor, in their order; `started` is 0 in the first step, when they are the identity.
  std::vector<Array> bases(const std::vector<Array>& state, const Array& started) const;
  // Returns x, which has the parameter's axes, in the coordinates of these bases; with `back`, returns x from
  // these coordinates to the parameter's own.
  Array turned(const Array& x, const std::vector<Array>& bases, bool back) const;
  // Returns x with Q diag(values) Q^T applied on every side.
  Array scaled(const Array& x, const std::vector<Array>& bases, const std::vector<Array>& values) const;
  // Returns the new arrays of state() after gradient g. If `refresh` is above 0, the bases follow the new
  // factors.
  std::vector<Array> followed(const std::vector<Array>& state, const std::vector<Array>& bases,
                              const Array& g, double beta, const Array& refresh) const;

  static constexpr const char* kOther = "matrix_other";

 private:
  std::vector<MatrixParts> parts_;  // one, or none
  std::vector<One> all_;
};

// A rule for the matrices inside a model by their factors; AdamW for the rest. `Options` are FactorOptions
// with the beta1, beta2 and epsilon of AdamW. The arrays of a parameter are AdamW's two, then
// Factors::state(); the scalars are AdamW's two, then "started" and "refresh".
template <typename Options>
class FactoredRule : public UpdateRule {
 public:
  explicit FactoredRule(const Options& options) : o_(options) {
    AdamRule adam;
    adam.beta1 = o_.beta1, adam.beta2 = o_.beta2, adam.epsilon = o_.epsilon;
    adam_ = make_adamw(adam);
  }

  std::vector<StateArray> state(const Parameter& p) const override {
    std::vector<StateArray> out = adam_->state(p);
    const std::vector<StateArray> more = Factors(p, o_.max_precond_dim).state();
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  std::vector<Scalar> scalars(int64_t step, int64_t num_train_steps) const override {
    std::vector<Scalar> out = adam_->scalars(step, num_train_steps);
    out.push_back({"started", step > 0 ? 1.0f : 0.0f});
    out.push_back({"refresh", step % o_.precondition_frequency == 0 ? 1.0f : 0.0f});
    return out;
  }

  double width_power(const Parameter& p) const override { return adam_->width_power(p); }

  RuleResults update(const Parameter& parameter, const RuleInputs& in) const override {
    const Factors factors(parameter, o_.max_precond_dim);
    return factors.all().empty() ? adam_->update(parameter, in) : update_by_factors(parameter, factors, in);
  }

 protected:
  // update() for a parameter that has factors.
  virtual RuleResults update_by_factors(const Parameter& parameter, const Factors& factors,
                                        const RuleInputs& in) const = 0;

  const Options o_;

 private:
  std::unique_ptr<UpdateRule> adam_;
};

}  // namespace ostro::optim
