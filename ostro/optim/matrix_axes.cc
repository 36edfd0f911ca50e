#include "ostro/optim/matrix_axes.h"

#include <algorithm>

#include "ostro/nn/linear.h"

namespace ostro::optim {

MatrixAxes matrix_axes(const Parameter& parameter) {
  const auto listed = [](const Axes& axes, const std::string& name) {
    return std::find(axes.begin(), axes.end(), name) != axes.end();
  };
  MatrixAxes out;
  Axes in = parameter.matrix.in;
  for (const Axis& a : parameter.shape.axes) {
    if (a.name == nn::kLayersAxis || a.name == "experts") {
      out.stack.push_back(a.name);
      continue;
    }
    if (in.empty()) in = {a.name};
    const bool row = listed(in, a.name);
    (row ? out.rows : out.columns).push_back(a.name);
    (row ? out.row_count : out.column_count) *= a.size;
  }
  if (out.columns.empty()) {  // a vector
    out.columns.swap(out.rows);
    std::swap(out.column_count, out.row_count);
  }
  return out;
}

}  // namespace ostro::optim
