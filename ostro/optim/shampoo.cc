// Shampoo (Gupta et al., 2018; Anil et al., 2020): the mean of gradients, multiplied by the inverse fourth
// roots of its two factors, as long as AdamW's update, for the matrices inside a model; AdamW for the rest.
#include "ostro/optim/factors.h"
#include "ostro/optim/option_checks.h"

namespace ostro::optim {
namespace {

using config::Effect;

class Shampoo final : public FactoredRule<ShampooRule> {
 public:
  using FactoredRule::FactoredRule;

 private:
  RuleResults update_by_factors(const Parameter& parameter, const Factors& factors,
                                const RuleInputs& in) const override {
    const Array &k1 = in.scalars[0], &k2 = in.scalars[1], &started = in.scalars[2], &refresh = in.scalars[3];
    const std::vector<Array> kept(in.state.begin() + 2, in.state.end());
    const std::vector<Array> now =
        factors.followed(kept, factors.bases(kept, started), in.g, o_.shampoo_beta, refresh);
    const Array m = in.state[0] * rounded(o_.beta1) + in.g * rounded(1.0 - o_.beta1);
    const Array v = in.state[1] * rounded(o_.beta2) + (in.g * in.g) * rounded(1.0 - o_.beta2);
    std::vector<Array> bases, values;
    for (size_t i = 0; i < factors.all().size(); ++i) {
      bases.push_back(now[2 * i + 1]);
      values.push_back(inverse_root(now[2 * i], now[2 * i + 1], factors.all()[i].axis));
    }
    const Array u = factors.scaled(m, bases, values);
    const Array adam = (m * k1) / (sqrt(v * k2) + rounded(o_.epsilon));
    const Axes stack = matrix_axes(parameter).stack;
    const auto length = [&](const Array& x) {
      return cast(sqrt(sums_of_squares(x, stack, *in.boxes)), DType::f32);
    };
    RuleResults out{descend(in, u * (length(adam) / (length(u) + 1e-30f))), {m, v}};
    out.state.insert(out.state.end(), now.begin(), now.end());
    return out;
  }

  // The value (q f q + ridge)^(-1/4) of the factor f along each vector q of its basis.
  Array inverse_root(const Array& factor, const Array& basis, const std::string& axis) const {
    const char* other = Factors::kOther;
    const std::string third = "matrix_third";
    const Array moved = dot(factor, rename(basis, Axes{axis, other}, Axes{other, third}), other);
    const Array along = sum(rename(moved, third, other) * basis, {axis});
    const Array ridge =
        sum(maximum(along, 0.0f), {other}) * rounded(o_.ridge / static_cast<double>(basis.size(other)));
    return rsqrt(sqrt(maximum(along, 0.0f) + (ridge + 1e-30f)));
  }
};

}  // namespace

std::unique_ptr<UpdateRule> make_shampoo(const ShampooRule& options) {
  return std::make_unique<Shampoo>(options);
}

void ShampooRule::set_defaults(CommonOptions& common) { common.learning_rate = 1e-3; }

void ShampooRule::visit_options(config::OptionTable& t) {
  t.add(&beta1, "beta1", Effect::kBits, "", "decay of the mean of gradients").other("0.8");
  t.add(&beta2, "beta2", Effect::kBits, "", "decay of AdamW's mean of squared gradients").other("0.99");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to the root of AdamW's mean of squared gradients")
      .other("1e-6");
  t.add(&ridge, "ridge", Effect::kBits, "", "added to eigenvalues, of their mean").other("1e-2");
  visit_factors(t);
}

Status ShampooRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(allowed_adam(section, beta1, beta2, epsilon));
  mistakes.add(allowed_positive(section, "ridge", ridge));
  mistakes.add(validate_factors(section));
  return mistakes.status();
}

}  // namespace ostro::optim
