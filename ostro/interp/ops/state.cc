// Sums of squares per box (numerics.md N13), for the optimizer, and fingerprints of arrays (N14), for the
// chain.
#include <algorithm>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/sums.h"

namespace ostro::interp {
namespace {

// Length of a box along an axis that is cut into `boxes`. For a part of a larger array the attribute
// "lengths" gives it.
int64_t box_length(const ir::Op& op, const Axis& axis, int64_t boxes) {
  if (op.attrs.has("lengths")) {
    const auto& axes = op.attrs.strs("axes");
    const auto at = std::find(axes.begin(), axes.end(), axis.name);
    if (at != axes.end()) return op.attrs.ints("lengths")[static_cast<size_t>(at - axes.begin())];
  }
  return std::max<int64_t>(1, (axis.size + boxes - 1) / boxes);
}

}  // namespace

Result<Buffers> run_box_sumsq(const Call& call) {
  const Shape &x_shape = call.shape(0), &out = call.out[0];
  const std::vector<float> x = elements<float>(call.in[0]);
  // The elements of each box, in row-major order of the array and so of the box.
  std::vector<std::vector<double>> boxes(static_cast<size_t>(out.count()));
  std::vector<int64_t> box_of(1, 0);
  for (const Axis& axis : x_shape.axes) {
    const bool cut = out.has(axis.name);
    const int64_t boxes_here = cut ? out.size_of(axis.name) : 1;
    const int64_t length = box_length(call.op, axis, boxes_here);
    std::vector<int64_t> longer;
    for (int64_t box : box_of)
      for (int64_t i = 0; i < axis.size; ++i) longer.push_back(box * boxes_here + i / length);
    box_of = std::move(longer);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(x[i]);
    boxes[box_of[i]].push_back(value * value);  // exact: 24 + 24 bits fit in 53
  }
  std::vector<double> sums;
  for (const std::vector<double>& box : boxes)
    sums.push_back(numerics::striped_sum(std::span<const double>(box)));
  return Buffers{make_buffer(out, sums)};
}

Result<Buffers> run_fingerprint(const Call& call) {
  const Shape& x = call.shape(0);
  const std::vector<int64_t>& global_sizes = call.op.attrs.ints("global_sizes");
  const int64_t bytes = ir::dtype_size(x.dtype);
  std::vector<int64_t> origins;
  for (size_t i = 1; i < call.in.size(); ++i) origins.push_back(integers(call.in[i])[0]);
  if (x.axes.empty()) {
    numerics::Fingerprint whole = numerics::fingerprint_array(1, 1, bytes, call.in[0].bytes());
    return Buffers{make_buffer(call.out[0], std::vector<int64_t>{static_cast<int64_t>(whole.lane[0]),
                                                                 static_cast<int64_t>(whole.lane[1])})};
  }
  // Rows are the leading axes; their number in the whole array comes from its sizes and our origins.
  Shape whole_rows{x.dtype, std::vector<Axis>(x.axes.begin(), x.axes.end() - 1)};
  const std::vector<Axis> row_axes = whole_rows.axes;
  int64_t first_row = 0;
  for (size_t i = 0; i < row_axes.size(); ++i) whole_rows.axes[i].size = global_sizes[i];
  for (size_t i = 0; i < row_axes.size(); ++i) first_row += origins[i] * whole_rows.strides()[i];
  const std::vector<int64_t> rows = offsets(row_axes, whole_rows);
  const int64_t length = x.axes.back().size, whole_length = global_sizes.back(), first = origins.back();
  const int64_t per_word = numerics::fingerprint_per_word(bytes);
  if (first % per_word != 0 || ((first + length) % per_word != 0 && first + length != whole_length))
    return invalid_argument(fmt::format(
        "fingerprint: {} is cut at {} .. {} of {}; cells of the last axis must be multiples of {}", x.str(),
        first, first + length, whole_length, per_word));
  numerics::Fingerprint sum;
  for (size_t i = 0; i < rows.size(); ++i)
    numerics::add_row_segment(sum, first_row + rows[i], whole_length, bytes, first,
                              call.in[0].bytes().subspan(i * static_cast<size_t>(length * bytes),
                                                         static_cast<size_t>(length * bytes)));
  return Buffers{make_buffer(call.out[0], std::vector<int64_t>{static_cast<int64_t>(sum.lane[0]),
                                                               static_cast<int64_t>(sum.lane[1])})};
}

}  // namespace ostro::interp
