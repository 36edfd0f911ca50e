#include <algorithm>

#include "ostro/cuda/routines/routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kIndexed = "routines/indexed.cu";
constexpr int64_t kMostScanned = 16384;  // sources of which each block reads all indices

}  // namespace

Status run_gather(const StepCall& call) {
  const DeviceArray &table = call.in[0], &index = call.in[1], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const std::vector<ir::Axis> rest(out.shape().axes.begin() + index.shape().rank(), out.shape().axes.end());
  args::GatherArgs a = {};
  a.table = table.at.at;
  a.index = index.at.at;
  a.to = out.at.at;
  a.element_bytes = ir::dtype_size(table.dtype());
  a.count = index.count();
  a.width = count_of(rest);
  a.rows = table.shape().size_of(axis);
  a.row_stride = stride_along(table, axis);
  a.origin = scalar_of(call.in[2]);
  a.index_in_table = axes_over(index.shape().axes, *table.view);
  a.rest_in_table = axes_over(rest, *table.view);
  return call.launch(kIndexed, "gather", out.count(), a);
}

Status run_scatter_add(const StepCall& call) {
  const DeviceArray &update = call.in[0], &index = call.in[1], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const auto batch = call.attrs().has("batch") ? call.attrs().strs("batch") : std::vector<std::string>{};
  const std::vector<ir::Axis> summed = axes_without(index.shape(), batch),
                              kept = axes_without(out.shape(), {axis});
  const compile::Contraction& contraction = call.contraction(summed, call.leaves);
  args::ScatterArgs a = {};
  a.update = update.at.at;
  a.index = index.at.at;
  a.to = out.at.at;
  a.update_type = type_number(update.dtype());
  a.kept = count_of(kept);
  a.sources = count_of(summed);
  a.rows = out.shape().size_of(axis);
  a.row_stride = stride_along(out, axis);
  a.origin = scalar_of(call.in[2]);
  a.kept_in_update = axes_over(kept, *update.view);
  a.kept_in_index = axes_over(kept, *index.view);
  a.kept_in_to = axes_over(kept, *out.view);
  RETURN_IF_ERROR(set_leaves(call, contraction, a));
  ASSIGN_OR_RETURN(a.source_in_update, call.table(0, [&] {
    return compile::in_order(compile::offsets_over(summed, *update.view), contraction);
  }));
  ASSIGN_OR_RETURN(a.source_in_index, call.table(1, [&] {
    return compile::in_order(compile::offsets_over(summed, *index.view), contraction);
  }));
  ASSIGN_OR_RETURN(a.segment_ends, call.table(2, [&] { return contraction.segment_ends; }));
  if (a.segments > 1) return call.launch(kIndexed, "scatter_leaves", a.kept * a.rows, a);
  bool one_index = a.kept > 0;  // for all columns
  for (int64_t k = 0; k < a.kept_in_index.rank; ++k) one_index = one_index && a.kept_in_index.stride[k] == 0;
  if (!one_index || a.sources > kMostScanned || !call.kernels.fast(Fast::kReductions))
    return call.launch(kIndexed, "scatter_columns", a.kept, a);
  RETURN_IF_ERROR(fill_zero(call, out.at, out.shape().bytes()));
  return call.launch("routines/scatter_rows.cu", "scatter_rows",
                     gpu::LaunchShape{.x = a.sources, .threads = 256}, a);
}

Status run_sort(const StepCall& call) {
  const DeviceArray &x = call.in[0], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const std::vector<ir::Axis> kept = axes_without(x.shape(), {axis});
  args::SortArgs a = {};
  a.from = x.at.at;
  a.to = out.at.at;
  a.indices = call.out[1].at.at;
  a.type = type_number(x.dtype());
  a.n = x.shape().size_of(axis);
  a.keep = out.shape().size_of(axis);
  a.from_stride = stride_along(x, axis);
  a.to_stride = stride_along(out, axis);
  a.lines = count_of(kept);
  a.descending = call.step.op == ir::OpKind::top_k || call.attrs().i64("descending", 0) != 0 ? 1 : 0;
  a.from_axes = axes_over(kept, *x.view);
  a.to_axes = axes_over(kept, *out.view);
  return call.launch(kIndexed, "sort_lines", a.lines * a.n, a);
}

Status run_reduction(const StepCall& call) {
  using ir::OpKind;
  const DeviceArray& x = call.in[0];
  const OpKind kind = call.step.op;
  const auto names =
      kind == OpKind::argmax ? std::vector<std::string>{call.attrs().str("axis")} : call.attrs().strs("axes");
  const std::vector<ir::Axis> kept = axes_without(x.shape(), names);
  std::vector<ir::Axis> reduced;
  for (const ir::Axis& a : x.shape().axes)
    if (std::find(names.begin(), names.end(), a.name) != names.end()) reduced.push_back(a);
  const compile::Contraction& contraction =
      call.contraction(reduced, kind == OpKind::sum ? call.leaves : numerics::LeafTable{});
  args::ReduceArgs a = {};
  a.from = x.at.at;
  a.to = call.out[0].at.at;
  a.kind = kind == OpKind::argmax                              ? args::REDUCE_ARGMAX
           : kind == OpKind::tree_sum                          ? args::REDUCE_TREE
           : kind == OpKind::reduce_max                        ? args::REDUCE_MAX
           : kind == OpKind::reduce_min                        ? args::REDUCE_MIN
           : call.attrs().str("order", "striped") == "striped" ? args::REDUCE_SUM_STRIPED
                                                               : args::REDUCE_SUM_SERIAL;
  a.type = type_number(x.dtype());
  a.to_type = type_number(call.out[0].dtype());
  a.outputs = call.out[0].count();
  a.length = count_of(reduced);
  a.kept = axes_over(kept, *x.view);
  RETURN_IF_ERROR(set_leaves(call, contraction, a));
  ASSIGN_OR_RETURN(a.reduced, call.table(0, [&] {
    return compile::in_order(compile::offsets_over(reduced, *x.view), contraction);
  }));
  ASSIGN_OR_RETURN(a.segment_ends, call.table(1, [&] { return contraction.segment_ends; }));
  return call.launch("routines/reduce.cu", "reduce", a.outputs, a);
}

}  // namespace ostro::cuda
