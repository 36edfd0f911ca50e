// Lion (Chen et al., 2023): the sign of a mean of gradients. One array for each parameter.
#include "ostro/optim/option_checks.h"
#include "ostro/optim/update_rule.h"

namespace ostro::optim {
namespace {

class Lion final : public UpdateRule {
 public:
  explicit Lion(const LionRule& options) : o_(options) {}

  std::vector<StateArray> state(const Parameter& p) const override { return {{"first_moment", p.shape}}; }

  RuleResults update(const Parameter& parameter, const RuleInputs& in) const override {
    const Array &m = in.state[0], &g = in.g;
    const Array mean = m * rounded(o_.beta1) + g * rounded(1.0 - o_.beta1);
    const Array sign = select(mean > 0.0f, 1.0f, select(mean < 0.0f, -1.0f, mean));
    const Array u = o_.cautious ? cautious(parameter, in, sign) : sign;
    return {descend(in, u), {m * rounded(o_.beta2) + g * rounded(1.0 - o_.beta2)}};
  }

 private:
  LionRule o_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lion(const LionRule& options) { return std::make_unique<Lion>(options); }

void LionRule::visit_options(config::OptionTable& t) {
  using config::Effect;
  t.add(&beta1, "beta1", Effect::kBits, "",
        "share of the mean in what gives the sign; the rest is the gradient")
      .other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "decay of the mean of gradients").other("0.99");
  t.add(&cautious, "cautious", Effect::kBits, "",
        "only elements whose update has the sign of their gradient move")
      .since_default("false");
}

Status LionRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_decay(section, "beta1", beta1));
  mistakes.add(allowed_decay(section, "beta2", beta2));
  return mistakes.status();
}

}  // namespace ostro::optim
