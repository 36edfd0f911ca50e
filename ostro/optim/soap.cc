// SOAP (Vyas et al., 2024): Adam in the slowly changing eigenbasis of Shampoo's two factors, for the matrices
// inside a model; AdamW for the rest.
#include "ostro/optim/factors.h"
#include "ostro/optim/option_checks.h"

namespace ostro::optim {
namespace {

using config::Effect;

class Soap final : public FactoredRule<SoapRule> {
 public:
  using FactoredRule::FactoredRule;

 private:
  RuleResults update_by_factors(const Parameter& /*parameter*/, const Factors& factors,
                                const RuleInputs& in) const override {
    const Array &k1 = in.scalars[0], &k2 = in.scalars[1], &started = in.scalars[2], &refresh = in.scalars[3];
    const std::vector<Array> kept(in.state.begin() + 2, in.state.end());
    // Of the gradients before this one: the basis changes after the step.
    const std::vector<Array> bases = factors.bases(kept, started);
    const Array m = in.state[0] * rounded(o_.beta1) + in.g * rounded(1.0 - o_.beta1);
    const Array g = factors.turned(in.g, bases, false);
    const Array v = in.state[1] * rounded(o_.beta2) + (g * g) * rounded(1.0 - o_.beta2);
    const Array u = (factors.turned(m, bases, false) * k1) / (sqrt(v * k2) + rounded(o_.epsilon));
    RuleResults out{descend(in, factors.turned(u, bases, true)), {m, v}};
    for (const Array& x : factors.followed(kept, bases, in.g, o_.shampoo_beta, refresh))
      out.state.push_back(x);
    return out;
  }
};

}  // namespace

std::unique_ptr<UpdateRule> make_soap(const SoapRule& options) { return std::make_unique<Soap>(options); }

void SoapRule::set_defaults(CommonOptions& common) { common.learning_rate = 3e-3; }

void SoapRule::visit_options(config::OptionTable& t) {
  t.add(&beta1, "beta1", Effect::kBits, "", "decay of the mean of gradients").other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "decay of the mean of squared gradients").other("0.99");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to the root of the mean of squared gradients")
      .other("1e-6");
  visit_factors(t);
}

void FactorOptions::visit_factors(config::OptionTable& t) {
  t.add(&shampoo_beta, "shampoo_beta", Effect::kBits, "", "decay of the mean of products of gradients")
      .other("0.9");
  t.add(&precondition_frequency, "precondition_frequency", Effect::kBits, "",
        "steps from one change of the eigenbasis to the next")
      .other("2");
  t.add(&max_precond_dim, "max_precond_dim", Effect::kBits, "",
        "the longest side of a matrix that gets an eigenbasis")
      .other("16")
      .fixed("the kept arrays follow from it");
}

Status SoapRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_adam(section, beta1, beta2, epsilon));
  mistakes.add(validate_factors(section));
  return mistakes.status();
}

Status FactorOptions::validate_factors(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_decay(section, "shampoo_beta", shampoo_beta));
  mistakes.add(
      allowed_positive(section, "precondition_frequency", static_cast<double>(precondition_frequency)));
  mistakes.add(allowed_positive(section, "max_precond_dim", static_cast<double>(max_precond_dim)));
  return mistakes.status();
}

}  // namespace ostro::optim
