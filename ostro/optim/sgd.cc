// Gradient descent with momentum, as PyTorch's SGD with dampening 0.
#include "ostro/optim/option_checks.h"
#include "ostro/optim/update_rule.h"

namespace ostro::optim {
namespace {

class Sgd final : public UpdateRule {
 public:
  explicit Sgd(const SgdOptions& options) : o_(options) {}

  std::vector<StateArray> state(const Parameter& p) const override { return {{"momentum", p.shape}}; }

  RuleResults update(const Parameter&, const RuleInputs& in) const override {
    const float mu = rounded(o_.momentum);
    const Array m = in.state[0] * mu + in.g;
    return {descend(in, o_.nesterov ? in.g + m * mu : m), {m}};
  }

 private:
  SgdOptions o_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const SgdOptions& options) { return std::make_unique<Sgd>(options); }

void SgdOptions::visit_options(config::OptionTable& t) {
  using config::Effect;
  visit_rate(t);
  t.add(&momentum, "momentum", Effect::kBits, "", "decay of the sum of gradients").other("0.8");
  t.add(&nesterov, "nesterov", Effect::kBits, "", "step along the gradient plus the decayed sum (Nesterov)");
  visit_schedule(t);
}

Status SgdOptions::validate(int64_t num_train_steps) const {
  RETURN_IF_ERROR(allowed_decay("momentum", momentum));
  return validate_common(num_train_steps);
}

}  // namespace ostro::optim
