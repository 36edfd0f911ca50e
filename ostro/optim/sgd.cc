// Gradient descent with momentum, as PyTorch's SGD with dampening 0.
#include "ostro/optim/option_checks.h"
#include "ostro/optim/update_rule.h"

namespace ostro::optim {
namespace {

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const SgdRule& options) : o_(options) {}

  std::vector<StateArray> state(const Parameter& p) const override { return {{"momentum", p.shape}}; }

  // Steps are as large as the gradient: that of a hidden matrix shrinks with the width as it should.
  double width_power(const Parameter& p) const override { return p.is_head() ? -1 : p.is_matrix() ? 0 : 1; }

  RuleResults update(const Parameter&, const RuleInputs& in) const override {
    const float mu = rounded(o_.momentum);
    const Array m = in.state[0] * mu + in.g;
    return {descend(in, o_.nesterov ? in.g + m * mu : m), {m}};
  }

 private:
  SgdRule o_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const SgdRule& options) { return std::make_unique<Sgd>(options); }

void SgdRule::visit_options(config::OptionTable& t) {
  using config::Effect;
  t.add(&momentum, "momentum", Effect::kBits, "", "decay of the sum of gradients").other("0.8");
  t.add(&nesterov, "nesterov", Effect::kBits, "", "step along the gradient plus the decayed sum (Nesterov)");
}

Status SgdRule::validate_rule(const std::string& section) const {
  return allowed_decay(section, "momentum", momentum);
}

}  // namespace ostro::optim
