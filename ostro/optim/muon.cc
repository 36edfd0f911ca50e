// Muon (Jordan et al., 2024): momentum, orthogonalised, for the matrices inside a model; AdamW for the rest.
#include <algorithm>
#include <cmath>

#include "ostro/optim/matrix/names.h"
#include "ostro/optim/matrix_parts.h"
#include "ostro/optim/option_checks.h"
#include "ostro/trace/ops.h"

namespace ostro::optim {
namespace {

// Traces the ops that compute, approximately, the nearest matrix with orthonormal rows or columns, by matrix
// products alone, for x, f32 [stack..., matrix_rows, matrix_columns] with these two in any order: from x /
// (norm + epsilon), `steps` steps of x <- a x + (b A + c A A) x, with A = x x^T over the shorter side and (a,
// b, c) = (3.4445, -4.7750, 2.0315). `dtype` is the type of the operands of products; their results are f32.
//
// Works on the shorter side, so that A = x x^T is the smaller product. Divided by its Frobenius norm, x has
// singular values of at most 1; each step maps them by the odd polynomial a s + b s^3 + c s^5, which drives
// them towards 1.
Array newton_schulz(const Array& given, int64_t steps, double epsilon, DType dtype) {
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  Axes stack;
  std::vector<int64_t> sizes;
  for (const Axis& a : given.shape().axes)
    if (a.name != kRows && a.name != kColumns) stack.push_back(a.name), sizes.push_back(a.size);
  const bool wide = given.size(kRows) <= given.size(kColumns);
  const std::string side = wide ? kRows : kColumns, far = wide ? kColumns : kRows;
  Axes order = stack;
  order.insert(order.end(), {side, far});
  Array x = transpose(given, order);
  const Array norm = cast(sqrt(box_sumsq(x, stack, sizes)), DType::f32);
  x = x / (norm + static_cast<float>(epsilon));
  const std::string other = "matrix_other", third = "matrix_third";
  for (int64_t i = 0; i < steps; ++i) {
    const Array y = cast(x, dtype);
    const Array square = dot(y, rename(y, side, other), far);  // [side, other], symmetric bit for bit
    const Array s = cast(square, dtype);
    // A A as A A^T, because A is symmetric: of such a product engines compute only half.
    const Array fourth = dot(s, rename(s, side, third), other);
    const Array mix = square * kB + rename(fourth, third, other) * kC;
    // Over `other`: mix [side, other] times x with its side named so.
    x = x * kA + dot(cast(mix, dtype), rename(y, side, other), other);
  }
  return transpose(x, given.shape().names());
}

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
  mistakes.add(allowed_positive(section, "muon_epsilon", muon_epsilon));
  mistakes.add(allowed_positive(section, "adam_lr", adam_lr));
  mistakes.add(allowed_adam(section, beta1, beta2, epsilon));
  return mistakes.status();
}

}  // namespace ostro::optim
