// Ops that read or write at places given by an index (numerics.md N10).
#include <algorithm>
#include <numeric>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/interp/core/leaves.h"
#include "ostro/interp/core/order.h"

namespace ostro::interp {

Result<Buffers> run_gather(const Call& call) {
  const Shape &table = call.shape(0), &index = call.shape(1), &out = call.out[0];
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t rows = table.size_of(axis);
  const int64_t stride = stride_of(table, axis);
  const int64_t origin = integers(call.in[2])[0];
  const std::vector<int64_t> indices = integers(call.in[1]);
  const std::vector<int64_t> index_at = offsets(out.axes, index);
  std::vector<int64_t> from = offsets(out.axes, table);
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t row = indices[index_at[i]] - origin;
    from[i] = row >= 0 && row < rows ? from[i] + row * stride : -1;
  }
  return Buffers{pick(call.in[0], out, from)};
}

Result<Buffers> run_scatter_add(const Call& call) {
  const Shape &update = call.shape(0), &index = call.shape(1), &out = call.out[0];
  const std::string& axis = call.op.attrs.str("axis");
  const auto batch = call.op.attrs.has("batch") ? call.op.attrs.strs("batch") : std::vector<std::string>{};
  const int64_t rows = out.size_of(axis);
  const int64_t stride = stride_of(out, axis);
  const int64_t origin = integers(call.in[2])[0];
  const std::vector<int64_t> indices = integers(call.in[1]);
  const std::vector<float> updates = elements<float>(call.in[0]);

  // Every source row (a point of the summed axes) is added to its target row, ascending, leaf by leaf.
  const std::vector<Axis> summed = axes_not_in(index, batch);
  const std::vector<Axis> kept = axes_not_in(out, {axis});
  const std::vector<int64_t> source_in_update = offsets(summed, update),
                             kept_in_update = offsets(kept, update);
  const std::vector<int64_t> source_in_index = offsets(summed, index), kept_in_index = offsets(kept, index);
  const std::vector<int64_t> kept_in_out = offsets(kept, out);
  const ContractionLeaves leaves = cut(summed, call.leaves);
  std::vector<std::vector<float>> partials;
  for (const std::vector<int64_t>& leaf : leaves.indices) {
    std::vector<float> sum(static_cast<size_t>(out.count()), 0.0f);
    for (int64_t r : leaf)
      for (size_t i = 0; i < kept_in_out.size(); ++i) {
        const int64_t row = indices[source_in_index[r] + kept_in_index[i]] - origin;
        if (row < 0 || row >= rows) continue;
        float& target = sum[kept_in_out[i] + row * stride];
        target = target + updates[source_in_update[r] + kept_in_update[i]];
      }
    partials.push_back(std::move(sum));
  }
  std::vector<float> result;
  for (int64_t i = 0; i < out.count(); ++i) {
    std::vector<float> of_leaf;
    for (const std::vector<float>& partial : partials) of_leaf.push_back(partial[i]);
    result.push_back(join(of_leaf, leaves.counts));
  }
  return Buffers{make_buffer(out, result)};
}

Result<Buffers> run_sort(const Call& call) {
  const Shape &x_shape = call.shape(0), &out = call.out[0];
  const std::string& axis = call.op.attrs.str("axis");
  const bool descending = call.op.kind == OpKind::top_k || call.op.attrs.i64("descending", 0) != 0;
  const int64_t stride = stride_of(x_shape, axis), out_stride = stride_of(out, axis);
  const std::vector<int64_t> first = part(x_shape, axis, 0, 1), out_first = part(out, axis, 0, 1);
  std::vector<int64_t> from(static_cast<size_t>(out.count()));
  std::vector<int32_t> index(from.size());
  with_type(x_shape.dtype, [&]<typename T>() {
    const std::vector<T> x = elements<T>(call.in[0]);
    for (size_t line = 0; line < first.size(); ++line) {
      std::vector<int64_t> order(static_cast<size_t>(x_shape.size_of(axis)));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        const T a = x[first[line] + i * stride], b = x[first[line] + j * stride];
        if (is_below(a, b)) return !descending;
        if (is_below(b, a)) return descending;
        return i < j;  // ties to the lower index
      });
      for (int64_t i = 0; i < out.size_of(axis); ++i) {
        from[out_first[line] + i * out_stride] = first[line] + order[i] * stride;
        index[out_first[line] + i * out_stride] = static_cast<int32_t>(order[i]);
      }
    }
  });
  return Buffers{pick(call.in[0], out, from), make_buffer(call.out[1], index)};
}

}  // namespace ostro::interp
