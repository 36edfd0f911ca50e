#include "ostro/optim/norm.h"

#include <algorithm>

namespace ostro::optim {

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

Array sums_of_squares(const Array& g, const Axes& but, const Boxes& boxes) {
  Axes axes, summed;
  std::vector<int64_t> counts;
  for (const Axis& a : g.shape().axes) {
    const bool stays = std::find(but.begin(), but.end(), a.name) != but.end();
    const int64_t n = stays ? a.size : boxes.count(a);
    if (!stays && n == 1) continue;
    axes.push_back(a.name);
    counts.push_back(n);
    if (!stays) summed.push_back(a.name);
  }
  const Array squares = box_sumsq(g, axes, counts);
  return summed.empty() ? squares : tree_sum(squares, summed);
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

}  // namespace ostro::optim
