// Integer products of experts on a GPU: plain kernels, one thread an output. For the outer products, the rows
// are sorted and both operands cut into working memory first.
#include "ostro/cuda/steps/fast_routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kExperts = "integers/experts.cu";

std::vector<int64_t> divided(std::vector<int64_t> list, int64_t by) {
  for (int64_t& x : list) x /= std::max<int64_t>(1, by);
  return list;
}

Result<uint64_t> room(const StepCall& call, size_t number, int64_t bytes) {
  return call.scratch(number, std::max<int64_t>(8, bytes));
}

}  // namespace

Status run_expert_dot_int8(const StepCall& call) {
  const DeviceArray &x = call.in[0], &w = call.in[2], &expert = call.in[4], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const std::vector<ir::Axis> n(out.shape().axes.begin() + expert.shape().rank(), out.shape().axes.end());
  args::ExpertDotInt8Args a = {};
  a.a = x.at.at;
  a.a_scales = call.in[1].at.at;
  a.b = w.at.at;
  a.b_scales = call.in[3].at.at;
  a.to = out.at.at;
  a.expert = expert.at.at;
  a.expert_axes = axes_over(expert.shape().axes, *expert.view);
  a.origin = scalar_of(call.in[5]);
  a.to_type = type_number(out.dtype());
  a.m = expert.count();
  a.n = count_of(n);
  a.size = count_of(axes_named(x.shape(), call.attrs().strs("over")));
  a.block = call.attrs().i64("block");
  a.blocks = (a.size + a.block - 1) / a.block;
  a.experts = w.shape().size_of(axis);
  a.b_step = a.size == 0 ? 0 : stride_along(w, axis) / a.size;
  ASSIGN_OR_RETURN(a.a_row, call.table(0, [&] {
    return divided(compile::offsets_over(expert.shape().axes, *x.view), a.size);
  }));
  ASSIGN_OR_RETURN(a.b_row,
                   call.table(1, [&] { return divided(compile::offsets_over(n, *w.view), a.size); }));
  return call.launch(kExperts, "expert_dot_int8", out.count(), a);
}

Status run_expert_outer_int8(const StepCall& call) {
  const DeviceArray &x = call.in[0], &y = call.in[1], &expert = call.in[2], &out = call.out[0];
  const std::vector<ir::Axis>& rows = expert.shape().axes;
  const std::vector<std::string> row_names = expert.shape().names();
  const std::vector<ir::Axis> m = axes_without(x.shape(), row_names), n = axes_without(y.shape(), row_names);
  compile::View whole = *y.view;
  const std::vector<int64_t>& sizes = call.attrs().ints("global_sizes");
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) whole.strides[i] = stride;
  args::ExpertOuterInt8Args a = {};
  a.a = x.at.at;
  a.b = y.at.at;
  a.to = out.at.at;
  a.expert = expert.at.at;
  a.key = call.in[4].at.at;
  a.key_step = compile::offsets_over(call.in[4].shape().axes, *call.in[4].view)[1];
  a.origin = scalar_of(call.in[3]);
  a.a_type = type_number(x.dtype());
  a.b_type = type_number(y.dtype());
  a.m = count_of(m);
  a.n = count_of(n);
  a.rows = count_of(rows);
  a.experts = call.attrs().i64("size");
  a.block = call.attrs().i64("block");
  a.blocks = a.rows / a.block + a.experts;
  a.rank = static_cast<int64_t>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    a.b_origin[i] = scalar_of(call.in[i + 5]);
    a.b_origin_stride[i] = whole.strides[i];
  }
  if (out.count() == 0) return Status();
  using compile::offsets_over;
  ASSIGN_OR_RETURN(a.a_row, call.table(0, [&] { return offsets_over(rows, *x.view); }));
  ASSIGN_OR_RETURN(a.a_col, call.table(1, [&] { return offsets_over(m, *x.view); }));
  ASSIGN_OR_RETURN(a.b_row, call.table(2, [&] { return offsets_over(rows, *y.view); }));
  ASSIGN_OR_RETURN(a.b_col, call.table(3, [&] { return offsets_over(n, *y.view); }));
  ASSIGN_OR_RETURN(a.draw_row, call.table(4, [&] { return offsets_over(rows, whole); }));
  ASSIGN_OR_RETURN(a.draw_col, call.table(5, [&] { return offsets_over(n, whole); }));
  ASSIGN_OR_RETURN(a.expert_row, call.table(6, [&] { return offsets_over(rows, *expert.view); }));
  ASSIGN_OR_RETURN(a.order, room(call, 7, a.rows * 8));
  ASSIGN_OR_RETURN(a.begins, room(call, 8, (a.experts + 1) * 8));
  ASSIGN_OR_RETURN(a.a_q, room(call, 9, a.m * a.rows));
  ASSIGN_OR_RETURN(a.a_scales, room(call, 10, a.m * a.blocks * 4));
  ASSIGN_OR_RETURN(a.b_q, room(call, 11, a.n * a.rows));
  ASSIGN_OR_RETURN(a.b_scales, room(call, 12, a.n * a.blocks * 4));
  RETURN_IF_ERROR(call.launch(kExperts, "sort_experts", a.experts + 1, a));
  RETURN_IF_ERROR(call.launch(kExperts, "cut_left", a.m * a.experts, a));
  RETURN_IF_ERROR(call.launch(kExperts, "cut_right", a.n * a.experts, a));
  return call.launch(kExperts, "expert_outer_int8", out.count(), a);
}

}  // namespace ostro::cuda
