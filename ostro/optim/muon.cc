// Muon (Jordan et al., 2024): momentum, orthogonalised, for the matrices inside a model; AdamW for the rest.
#include <algorithm>
#include <cmath>

#include "ostro/optim/matrix/newton_schulz.h"
#include "ostro/optim/matrix_parts.h"
#include "ostro/optim/option_checks.h"

namespace ostro::optim {
namespace {

using config::Effect;

AdamRule adam_of(const MuonRule& o) {
  AdamRule out;
  out.beta1 = o.beta1, out.beta2 = o.beta2, out.epsilon = o.epsilon;
  return out;
}

class Muon final : public UpdateRule {
 public:
  Muon(const MuonRule& options, double learning_rate)
      : o_(options), adam_share_(options.adam_lr / learning_rate), adam_(make_adamw(adam_of(options))) {}

  std::vector<StateArray> state(const Parameter& p) const override {
    if (!is_hidden_matrix(p)) return adam_->state(p);
    return {{"momentum", p.shape}};
  }

  std::vector<Scalar> scalars(int64_t step, int64_t num_train_steps) const override {
    return adam_->scalars(step, num_train_steps);
  }

  // The largest singular value of an orthogonal step depends on the shape alone; Kimi's scale makes it grow
  // with the root of the width.
  double width_power(const Parameter& p) const override {
    if (!is_hidden_matrix(p)) return adam_->width_power(p);
    return o_.use_kimi_scaling ? -0.5 : 0;
  }

  RuleResults update(const Parameter& parameter, const RuleInputs& in) const override {
    if (!is_hidden_matrix(parameter)) {
      RuleInputs rest = in;
      rest.lr = in.lr * rounded(adam_share_);
      return adam_->update(parameter, rest);
    }
    const float mu = rounded(o_.momentum);
    const Array m = in.state[0] * mu + in.g;
    return {descend(in, direction(parameter, o_.nesterov ? in.g + m * mu : m)), {m}};
  }

 private:
  Array direction(const Parameter& parameter, const Array& u) const {
    const MatrixParts parts(parameter);
    std::vector<Array> matrices = parts.split_up(u);
    for (Array& x : matrices) x = orthogonal(x);
    return parts.joined(matrices);
  }

  Array orthogonal(const Array& given) const {
    const DType dtype = o_.newton_schulz_dtype == NewtonSchulzDtype::kBf16 ? DType::bf16 : DType::f32;
    const double n = static_cast<double>(given.size(kRows)), m = static_cast<double>(given.size(kColumns));
    const Array x = newton_schulz(given, o_.backend_steps, o_.muon_epsilon, dtype);
    return x *
           rounded(o_.use_kimi_scaling ? 0.2 * std::sqrt(std::max(n, m)) : std::sqrt(std::max(1.0, m / n)));
  }

  MuonRule o_;
  double adam_share_;  // of the learning rate
  std::unique_ptr<UpdateRule> adam_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_muon(const MuonRule& options, double learning_rate) {
  return std::make_unique<Muon>(options, learning_rate);
}

void MuonRule::set_defaults(CommonOptions& common) { common.learning_rate = 0.02; }

std::vector<std::string> option_names(NewtonSchulzDtype) { return {"f32", "bf16"}; }

void MuonRule::visit_options(config::OptionTable& t) {
  t.add(&momentum, "momentum", Effect::kBits, "", "decay of the sum of gradients").other("0.8");
  t.add(&nesterov, "nesterov", Effect::kBits, "", "step along the gradient plus the decayed sum (Nesterov)");
  t.add(&backend_steps, "backend_steps", Effect::kBits, "", "Newton-Schulz steps").other("6");
  t.add(&newton_schulz_dtype, "newton_schulz_dtype", Effect::kBits, "",
        "operands of the matrix products of Newton-Schulz")
      .other("bf16");
  t.add(&muon_epsilon, "muon_epsilon", Effect::kBits, "", "added to the norm of a matrix").other("1e-3");
  t.add(&use_kimi_scaling, "use_kimi_scaling", Effect::kBits, "",
        "scale updates by 0.2 sqrt(max(rows, columns)), so that they are as large as AdamW's, instead of "
        "sqrt(max(1, columns / rows))");
  t.add(&adam_lr, "adam_lr", Effect::kBits, "",
        "highest learning rate of AdamW, for embeddings, head, norms and biases");
  t.add(&beta1, "beta1", Effect::kBits, "", "AdamW's decay of the mean of gradients").other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "AdamW's decay of the mean of squared gradients").other("0.99");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to the root of AdamW's mean of squared gradients")
      .other("1e-6");
}

Status MuonRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_decay(section, "momentum", momentum));
  mistakes.add(allowed(backend_steps >= 1 && backend_steps <= 100, section, "backend_steps",
                       static_cast<double>(backend_steps), "use 1 to 100"));
  mistakes.add(allowed(muon_epsilon > 0, section, "muon_epsilon", muon_epsilon, "use a positive number"));
  mistakes.add(allowed(adam_lr > 0, section, "adam_lr", adam_lr, "use a positive number"));
  mistakes.add(allowed_decay(section, "beta1", beta1));
  mistakes.add(allowed_decay(section, "beta2", beta2));
  mistakes.add(allowed(epsilon > 0, section, "epsilon", epsilon, "use a positive number"));
  return mistakes.status();
}

}  // namespace ostro::optim
