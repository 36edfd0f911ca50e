// Adafactor (Shazeer and Stern, 2018): the second moment of a matrix as the product of a column and a row.
#include <algorithm>

#include "ostro/numerics/functions.h"
#include "ostro/optim/matrix_axes.h"
#include "ostro/optim/option_checks.h"

namespace ostro::optim {
namespace {

class Adafactor final : public UpdateRule {
 public:
  explicit Adafactor(const AdafactorRule& options) : o_(options) {}

  std::vector<StateArray> state(const Parameter& p) const override {
    const MatrixAxes axes = matrix_axes(p);
    if (!factored(axes)) return {{"second_moment", p.shape}};
    return {{"second_moment_rows", without(p.shape, axes.columns)},
            {"second_moment_columns", without(p.shape, axes.rows)}};
  }

  // The decay of the second moment: 1 - t^-decay_rate, t = 1 at the first step.
  std::vector<Scalar> scalars(int64_t step, int64_t /*num_train_steps*/) const override {
    const double rest = numerics::pow_f64(static_cast<double>(step + 1), -o_.decay_rate);
    return {{"b2", rounded(1.0 - rest)}, {"c2", rounded(rest)}};
  }

  // The scale of a parameter falls with the width as its drawn values do.
  double width_power(const Parameter& p) const override {
    if (!o_.multiply_by_parameter_scale) return UpdateRule::width_power(p);
    return p.is_matrix() && !p.is_head() ? -0.5 : 0;
  }

  RuleResults update(const Parameter& parameter, const RuleInputs& in) const override {
    const MatrixAxes axes = matrix_axes(parameter);
    const Array &g = in.g, &b2 = in.scalars[0], &c2 = in.scalars[1];
    const float epsilon = rounded(o_.epsilon);
    RuleResults out;
    Array u;
    if (factored(axes)) {
      const Array rows = in.state[0] * b2 + mean_square(g, axes.columns, *in.boxes, epsilon) * c2;
      const Array columns = in.state[1] * b2 + mean_square(g, axes.rows, *in.boxes, epsilon) * c2;
      const Array mean = tree_sum(rows, axes.rows) * (1.0f / static_cast<float>(axes.row_count));
      u = (g * rsqrt(rows / mean)) * rsqrt(columns);
      out.state = {rows, columns};
    } else {
      const Array v = in.state[0] * b2 + (g * g + epsilon) * c2;
      u = g * rsqrt(v);
      out.state = {v};
    }
    if (o_.clipping_threshold)
      u = u / maximum(root_mean_square(u, axes, *in.boxes) * rounded(1.0 / *o_.clipping_threshold), 1.0f);
    if (o_.multiply_by_parameter_scale)
      u = u * maximum(root_mean_square(in.p, axes, *in.boxes), rounded(1e-3));
    out.p = descend(in, u);
    return out;
  }

 private:
  bool factored(const MatrixAxes& axes) const {
    return !axes.rows.empty() && std::min(axes.row_count, axes.column_count) >= o_.min_dim_size_to_factor;
  }

  static Shape without(const Shape& shape, const Axes& dropped) {
    Shape out{shape.dtype, {}};
    for (const Axis& a : shape.axes)
      if (std::find(dropped.begin(), dropped.end(), a.name) == dropped.end()) out.axes.push_back(a);
    return out;
  }

  static double count(const Array& x, const Axes& axes) {
    double n = 1;
    for (const std::string& name : axes) n *= static_cast<double>(x.size(name));
    return n;
  }

  static Axes others(const Array& x, const Axes& axes) {
    Axes out;
    for (const Axis& a : x.shape().axes)
      if (std::find(axes.begin(), axes.end(), a.name) == axes.end()) out.push_back(a.name);
    return out;
  }

  // mean(x * x) + epsilon over the axes.
  static Array mean_square(const Array& x, const Axes& over, const Boxes& boxes, float epsilon) {
    return cast(sums_of_squares(x, others(x, over), boxes) * (1.0 / count(x, over)), DType::f32) + epsilon;
  }

  // Of each matrix of a stack.
  static Array root_mean_square(const Array& x, const MatrixAxes& axes, const Boxes& boxes) {
    const double n = count(x, others(x, axes.stack));
    return cast(sqrt(sums_of_squares(x, axes.stack, boxes) * (1.0 / n)), DType::f32);
  }

  AdafactorRule o_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adafactor(const AdafactorRule& options) {
  return std::make_unique<Adafactor>(options);
}

void AdafactorRule::set_defaults(CommonOptions& common) {
  common.learning_rate = 1e-2, common.weight_decay = 0;
}

void AdafactorRule::visit_options(config::OptionTable& t) {
  using config::Effect;
  t.add(&decay_rate, "decay_rate", Effect::kBits, "",
        "the mean of squared gradients decays by 1 - t^-decay_rate in step t")
      .other("0.7");
  t.add(&epsilon, "epsilon", Effect::kBits, "", "added to squared gradients").other("1e-8");
  t.add(&clipping_threshold, "clipping_threshold", Effect::kBits, "",
        "updates of a larger root mean square are scaled down to it; null: never")
      .other("0.5");
  t.add(&multiply_by_parameter_scale, "multiply_by_parameter_scale", Effect::kBits, "",
        "updates are relative to the root mean square of the parameter");
  t.add(&min_dim_size_to_factor, "min_dim_size_to_factor", Effect::kBits, "",
        "matrices of fewer rows or columns have a second moment of their own shape")
      .other("16")
      .fixed("the shapes of the kept arrays follow from it");
}

Status AdafactorRule::validate_rule(const std::string& section) const {
  config::Mistakes mistakes;
  mistakes.add(
      allowed(decay_rate > 0 && decay_rate <= 1, section, "decay_rate", decay_rate, "use above 0 to 1"));
  mistakes.add(allowed_positive(section, "epsilon", epsilon));
  if (clipping_threshold)
    mistakes.add(allowed(*clipping_threshold > 0, section, "clipping_threshold", *clipping_threshold,
                         "use a positive number or null"));
  mistakes.add(
      allowed_positive(section, "min_dim_size_to_factor", static_cast<double>(min_dim_size_to_factor)));
  return mistakes.status();
}

}  // namespace ostro::optim
