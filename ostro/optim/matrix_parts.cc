#include "ostro/optim/matrix_parts.h"

#include <algorithm>

namespace ostro::optim {
namespace {

constexpr const char* kWhole = "matrix_parts";  // an axis renamed so is whole, and can be cut anywhere

bool listed(const Axes& axes, const std::string& name) {
  return std::find(axes.begin(), axes.end(), name) != axes.end();
}

Axes own_names(const Axes& names) {
  Axes out;
  for (const std::string& name : names) out.push_back("matrix_" + name);
  return out;
}

Axes names_of(const std::vector<Axis>& axes) {
  Axes out;
  for (const Axis& a : axes) out.push_back(a.name);
  return out;
}

}  // namespace

bool is_hidden_matrix(const Parameter& p) {
  return !p.matrix.in.empty() && !p.shape.has("vocab") && !matrix_axes(p).rows.empty();
}

MatrixParts::MatrixParts(const Parameter& parameter) {
  const nn::Fused& fused = parameter.matrix.fused;
  MatrixAxes axes = matrix_axes(parameter);
  if (!fused.axis.empty()) {
    for (const nn::Fused::Part& part : fused.parts) counts_.push_back(part.count);
    // Parts of one index are a stack, where other columns remain.
    const bool single = std::all_of(counts_.begin(), counts_.end(), [](int64_t n) { return n == 1; });
    if (single && axes.columns != Axes{fused.axis})
      std::erase(axes.columns, fused.axis);
    else
      fused_ = fused.axis;
  }
  if (fused_.empty()) counts_ = {1};
  for (const int64_t count : counts_) {
    Part part;
    for (Axis a : parameter.shape.axes) {
      const bool row = listed(axes.rows, a.name), column = listed(axes.columns, a.name);
      if (!fused_.empty() && a.name == fused_) a = {kWhole, count};
      (row ? part.row_count : part.column_count) *= row || column ? a.size : 1;
      if (row || column) a.name = "matrix_" + a.name;
      (row ? part.rows : column ? part.columns : part.stack).push_back(a);
      part.order.push_back(a.name);
    }
    parts_.push_back(part);
  }
  for (const Axis& a : parameter.shape.axes) {
    const std::string name = !fused_.empty() && a.name == fused_ ? kWhole : a.name;
    if (listed(axes.rows, a.name)) rows_.push_back(name);
    if (listed(axes.columns, a.name)) columns_.push_back(name);
  }
}

std::vector<Array> MatrixParts::split_up(const Array& x) const {
  std::vector<Array> out;
  for (const Array& part :
       fused_.empty() ? std::vector<Array>{x} : split(rename(x, fused_, kWhole), kWhole, counts_)) {
    // All axes of the matrix get names that no mesh maps, so they become whole; then rows and columns are
    // merged.
    const Array y = rename(rename(part, rows_, own_names(rows_)), columns_, own_names(columns_));
    out.push_back(merge_axes(merge_axes(y, own_names(rows_), kRows), own_names(columns_), kColumns));
  }
  return out;
}

Array MatrixParts::joined(const std::vector<Array>& matrices) const {
  std::vector<Array> out;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Part& part = parts_[i];
    const Array y = split_axis(split_axis(matrices[i], kRows, part.rows), kColumns, part.columns);
    out.push_back(
        rename(rename(transpose(y, part.order), own_names(rows_), rows_), names_of(part.columns), columns_));
  }
  return fused_.empty() ? out[0] : rename(concat(out, kWhole), kWhole, fused_);
}

}  // namespace ostro::optim
