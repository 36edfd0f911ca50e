// Schedule-free AdamW (Defazio et al., 2024): gradients are taken between a fast sequence z and its weighted
// mean x, and x is the result. No schedule needs to know when the run ends.
#include <cmath>

#include "ostro/numerics/functions.h"
#include "ostro/optim/option_checks.h"
#include "ostro/optim/schedule.h"
#include "ostro/optim/update_rule.h"

namespace ostro::optim {
namespace {

class ScheduleFree final : public UpdateRule {
 public:
  ScheduleFree(const ScheduleFreeRule& options, const CommonOptions& common) : o_(options), common_(common) {}

  // The parameter itself is y, where gradients are taken. Evaluation and export use "average".
  std::vector<StateArray> state(const Parameter& p) const override {
    return {{"fast", p.shape}, {kAverage, p.shape}, {"second_moment", p.shape}};
  }

  // The weight of z in x in this step: its squared rate as a share of all so far.
  std::vector<Scalar> scalars(int64_t step, int64_t num_train_steps) const override {
    const int64_t t = step + 1;
    double sum = 0, weight = 0;
    for (int64_t i = 0; i <= step; ++i) {
      const double rate = learning_rate(common_, i, num_train_steps);
      weight = rate * rate;
      sum += weight;
    }
    const double share = sum > 0 ? weight / sum : 1.0;
    return {{"k2", rounded(1.0 / (1.0 - numerics::pow_int_f64(o_.beta2, t)))},
            {"share", rounded(share)},
            {"first", step == 0 ? 1.0f : 0.0f}};
  }

  RuleResults update(const Parameter&, const RuleInputs& in) const override {
    const Array first = in.scalars[2] > 0.0f;
    const Array z = select(first, in.p, in.state[0]), x = select(first, in.p, in.state[1]);
    const Array& g = in.g;
    const Array v = in.state[2] * rounded(o_.beta2) + (g * g) * rounded(1.0 - o_.beta2);
    const Array u = g / (sqrt(v * in.scalars[0]) + rounded(o_.epsilon));
    const Array step = in.weight_decay != 0 ? u + in.p * rounded(in.weight_decay) : u;
    const Array new_z = z - step * in.lr;
    const Array new_x = x + (new_z - x) * in.scalars[1];
    return {new_z + (new_x - new_z) * rounded(o_.beta1), {new_z, new_x, v}};
  }

 private:
  ScheduleFreeRule o_;
  CommonOptions common_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_schedule_free(const ScheduleFreeRule& options, const CommonOptions& common) {
  return std::make_unique<ScheduleFree>(options, common);
}

void ScheduleFreeRule::set_defaults(CommonOptions& common) {
  common.learning_rate = 2e-3, common.lr_schedule = LrSchedule::kConstant;
}

void ScheduleFreeRule::visit_options(config::OptionTable& t) {
  using config::Effect;
  t.add(&beta1, "beta1", Effect::kBits, "", "gradients are taken at (1 - beta1) z + beta1 x").other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "decay of the mean of squared gradients").other("0.99");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to the root of the mean of squared gradients")
      .other("1e-6");
}

Status ScheduleFreeRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed(beta1 > 0 && beta1 < 1, section, "beta1", beta1, "use above 0 and less than 1"));
  mistakes.add(allowed_decay(section, "beta2", beta2));
  mistakes.add(allowed_positive(section, "epsilon", epsilon));
  return mistakes.status();
}

}  // namespace ostro::optim
