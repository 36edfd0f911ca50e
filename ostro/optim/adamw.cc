#include "ostro/optim/adamw.h"

#include "ostro/numerics/functions.h"
#include "ostro/optim/schedule.h"

namespace ostro::optim {
namespace {

// A constant of the f32 arithmetic, computed in f64 and rounded once.
float rounded(double value) { return static_cast<float>(value); }

// "*" matches any text, "/" included; everything else stands for itself.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*')
    return !text.empty() && text[0] == pattern[0] && matches(pattern.substr(1), text.substr(1));
  for (size_t skip = 0; skip <= text.size(); ++skip)
    if (matches(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

}  // namespace

int64_t Boxes::count(const Axis& axis) const {
  for (const auto& [name, n] : cells)
    if (name == axis.name) return std::min(n, axis.size);
  for (const std::string& name : stacked)
    if (name == axis.name) return axis.size;
  return 1;
}

Array sum_of_squares(const Array& g, const Boxes& boxes) {
  Axes axes;
  std::vector<int64_t> counts;
  for (const Axis& a : g.shape().axes) {
    const int64_t n = boxes.count(a);
    if (n == 1) continue;
    axes.push_back(a.name);
    counts.push_back(n);
  }
  const Array squares = box_sumsq(g, axes, counts);
  return axes.empty() ? squares : tree_sum(squares, axes);
}

GlobalNorm global_norm(const std::vector<Array>& gradients, const Array& inv, std::optional<double> max_norm,
                       const Boxes& boxes) {
  std::vector<Array> squares;
  for (const Array& g : gradients) squares.push_back(sum_of_squares(g, boxes));
  const Array total = tree_sum(stack(squares, "parameters"), {"parameters"});
  GlobalNorm out;
  out.norm = sqrt(total) * cast(inv, DType::f64);
  const Array one = full(1, DType::f32, {});
  if (max_norm)
    out.clip = select(out.norm > *max_norm, cast(*max_norm / out.norm, DType::f32), one);
  else
    out.clip = one;
  return out;
}

AdamScalars adam_scalars(const AdamOptions& o, int64_t step, int64_t num_train_steps) {
  const int64_t t = step + 1;
  return {rounded(learning_rate(o, step, num_train_steps)),
          rounded(1.0 / (1.0 - numerics::pow_int_f64(o.beta1, t))),
          rounded(1.0 / (1.0 - numerics::pow_int_f64(o.beta2, t)))};
}

AdamResult adamw(const AdamOptions& o, bool decayed, const Array& p, const Array& m, const Array& v,
                 const Array& gradient, const Array& inv, const Array& clip, const Array& lr, const Array& k1,
                 const Array& k2) {
  const float b1 = rounded(o.beta1), b2 = rounded(o.beta2), c1 = rounded(1.0 - o.beta1),
              c2 = rounded(1.0 - o.beta2);
  const Array g = (gradient * inv) * clip;
  AdamResult out;
  out.m = m * b1 + g * c1;
  out.v = v * b2 + (g * g) * c2;
  const Array u = (out.m * k1) / (sqrt(out.v * k2) + rounded(o.epsilon));
  const Array step = decayed && o.weight_decay != 0 ? u + p * rounded(o.weight_decay) : u;
  out.p = p - step * lr;
  return out;
}

bool decays(const AdamOptions& o, const std::string& path) {
  if (o.weight_decay_modules) {
    for (const std::string& word : *o.weight_decay_modules)
      if (matches(word, path)) return true;
    return false;
  }
  for (const char* word : {"norm", "embedding", "bias"})
    if (path.find(word) != std::string::npos) return false;
  return true;
}

}  // namespace ostro::optim
