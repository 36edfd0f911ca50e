// AdamW (numerics.md N13).
#include "ostro/numerics/functions.h"
#include "ostro/optim/option_checks.h"
#include "ostro/optim/update_rule.h"

namespace ostro::optim {
namespace {

using config::Effect;

class AdamW final : public UpdateRule {
 public:
  explicit AdamW(const AdamRule& options) : o_(options) {}

  std::vector<StateArray> state(const Parameter& p) const override {
    return {{"first_moment", p.shape}, {"second_moment", p.shape}};
  }

  // k = 1 / (1 - beta^t), t = 1 at the first step.
  std::vector<Scalar> scalars(int64_t step, int64_t /*num_train_steps*/) const override {
    const int64_t t = step + 1;
    return {{"k1", rounded(1.0 / (1.0 - numerics::pow_int_f64(o_.beta1, t)))},
            {"k2", rounded(1.0 / (1.0 - numerics::pow_int_f64(o_.beta2, t)))}};
  }

  RuleResults update(const Parameter& parameter, const RuleInputs& in) const override {
    const float b1 = rounded(o_.beta1), b2 = rounded(o_.beta2), c1 = rounded(1.0 - o_.beta1),
                c2 = rounded(1.0 - o_.beta2);
    const Array& g = in.g;
    const Array m = in.state[0] * b1 + g * c1;
    const Array v = in.state[1] * b2 + (g * g) * c2;
    const Array u = (m * in.scalars[0]) / (sqrt(v * in.scalars[1]) + rounded(o_.epsilon));
    return {descend(in, o_.cautious ? cautious(parameter, in, u) : u), {m, v}};
  }

 private:
  AdamRule o_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(const AdamRule& options) { return std::make_unique<AdamW>(options); }

void AdamRule::visit_options(config::OptionTable& t) {
  t.add(&beta1, "beta1", Effect::kBits, "", "decay of the mean of gradients").other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "decay of the mean of squared gradients").other("0.99");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to the root of the mean of squared gradients")
      .other("1e-6");
  t.add(&cautious, "cautious", Effect::kBits, "",
        "only elements whose update has the sign of their gradient move")
      .since_default("false");
}

Status AdamRule::validate_rule(const std::string& section) const {
  return allowed_adam(section, beta1, beta2, epsilon);
}

}  // namespace ostro::optim
