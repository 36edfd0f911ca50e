#include "ostro/cuda/steps/fast_routines.h"

#include <algorithm>

#include "ostro/cuda/products/strided.h"
#include "ostro/ir/program/product_rule.h"

namespace ostro::cuda {
namespace {

constexpr const char* kProducts = "products/products.cu";
constexpr const char* kTensorRule = "products/tensor_rule.cu";
constexpr int64_t kTensorTile = 64;
constexpr int64_t kLeastTiled = 32;     // of rows and columns: smaller products leave most of a tile empty
constexpr int64_t kMostBlocks = 65535;  // in the second and the third dimension

using compile::in_order;
using compile::offsets_over;
using compile::scale_offsets;

// The tables that a dot and a dot by experts have in common, numbered from 0; the scales of a stored matrix
// are `scales`.
Status set_operands(const StepCall& call, const std::vector<ir::Axis>& k, const std::vector<ir::Axis>& n,
                    const DeviceArray* scales, args::DotArgs& a) {
  const DeviceArray &x = call.in[0], &w = call.in[1];
  const compile::Contraction& contraction = call.contraction(k, call.leaves);
  RETURN_IF_ERROR(set_leaves(call, contraction, a));
  a.a = x.at.at;
  a.b = w.at.at;
  a.c = call.out[0].at.at;
  a.a_type = type_number(x.dtype());
  a.b_type = type_number(w.dtype());
  a.c_type = type_number(call.out[0].dtype());
  a.n = count_of(n);
  a.k = count_of(k);
  ASSIGN_OR_RETURN(a.segment_ends, call.table(0, [&] { return contraction.segment_ends; }));
  ASSIGN_OR_RETURN(a.a_col, call.table(1, [&] { return in_order(offsets_over(k, *x.view), contraction); }));
  ASSIGN_OR_RETURN(a.b_row, call.table(2, [&] { return in_order(offsets_over(k, *w.view), contraction); }));
  ASSIGN_OR_RETURN(a.b_col, call.table(3, [&] { return offsets_over(n, *w.view); }));
  if (scales == nullptr) return Status();
  const auto& scaled = call.attrs().strs("scaled");
  const std::string& groups = call.attrs().str("groups");
  a.scales = scales->at.at;
  a.scale_type = type_number(scales->dtype());
  ASSIGN_OR_RETURN(a.s_row, call.table(4, [&] {
    return in_order(scale_offsets(k, scaled, groups, *w.view, *scales->view), contraction);
  }));
  ASSIGN_OR_RETURN(a.s_col,
                   call.table(5, [&] { return scale_offsets(n, scaled, groups, *w.view, *scales->view); }));
  return Status();
}

// The tensor cores of the device, where they have the rule of N23; otherwise, and where a product has leaves
// or is small, integer arithmetic.
Status run_tensor_rule(const StepCall& call, const std::vector<ir::Axis>& k, args::DotArgs& a) {
  const int64_t rows = (a.m + kTensorTile - 1) / kTensorTile, columns = (a.n + kTensorTile - 1) / kTensorTile;
  const bool has_rule = call.device().limits().tensor_rule && call.kernels.fast(Fast::kTensorRule);
  if (!has_rule || a.segments > 1 || a.m < kLeastTiled || a.n < kLeastTiled || a.batches > kMostBlocks ||
      rows > kMostBlocks)
    return call.launch(kTensorRule, "tensor_dot", call.out[0].count(), a);
  a.a_along_k = !k.empty() && stride_along(call.in[0], k.back().name) == 1 ? 1 : 0;
  a.b_along_k = !k.empty() && stride_along(call.in[1], k.back().name) == 1 ? 1 : 0;
  return call.launch("products/tensor_tiles.cu", "tensor_tiles",
                     gpu::LaunchShape{.x = columns, .y = rows, .z = a.batches, .threads = 128}, a);
}

}  // namespace

Status run_dot(const StepCall& call) {
  const DeviceArray &x = call.in[0], &w = call.in[1], &y = call.out[0];
  const auto& over = call.attrs().strs("over");
  DotAxes axes = {.batch = {}, .m = {}, .n = {}, .k = axes_named(x.shape(), over)};
  for (const ir::Axis& axis : x.shape().axes)
    if (std::find(over.begin(), over.end(), axis.name) == over.end())
      (w.shape().has(axis.name) ? axes.batch : axes.m).push_back(axis);
  for (const ir::Axis& axis : w.shape().axes)
    if (!x.shape().has(axis.name)) axes.n.push_back(axis);
  args::DotArgs a = {};
  RETURN_IF_ERROR(set_operands(call, axes.k, axes.n, w.dtype() == ir::DType::i8 ? &call.in[2] : nullptr, a));
  a.m = count_of(axes.m);
  a.batches = count_of(axes.batch);
  a.goes_on = call.step.goes_on && call.go_on ? 1 : 0;
  ASSIGN_OR_RETURN(a.a_row, call.table(6, [&] { return offsets_over(axes.m, *x.view); }));
  ASSIGN_OR_RETURN(a.c_row, call.table(7, [&] { return offsets_over(axes.m, *y.view); }));
  ASSIGN_OR_RETURN(a.c_col, call.table(8, [&] { return offsets_over(axes.n, *y.view); }));
  ASSIGN_OR_RETURN(a.batch, call.table(9, [&] {
    const auto in_x = offsets_over(axes.batch, *x.view), in_w = offsets_over(axes.batch, *w.view),
               in_y = offsets_over(axes.batch, *y.view);
    std::vector<int64_t> all;
    for (size_t i = 0; i < in_x.size(); ++i) all.insert(all.end(), {in_x[i], in_w[i], in_y[i]});
    return all;
  }));
  if (ir::is_tc16(call.attrs())) return run_tensor_rule(call, axes.k, a);
  if (call.kernels.fast(Fast::kProducts))
    if (const auto tiles = strided_launch(call, axes, a))
      return call.launch(tiles->file.c_str(), tiles->kernel.c_str(), tiles->shape, a);
  if (a.segments > 1 || a.m < kLeastTiled || a.n < kLeastTiled || a.batches > kMostBlocks ||
      (a.m + 127) / 128 > kMostBlocks)
    return call.launch(kProducts, "dot", y.count(), a);
  a.a_along_k = !axes.k.empty() && stride_along(x, axes.k.back().name) == 1 ? 1 : 0;
  a.b_along_k = !axes.k.empty() && stride_along(w, axes.k.back().name) == 1 ? 1 : 0;
  const bool narrow = x.dtype() == ir::DType::bf16;
  const int64_t columns = narrow ? 64 : 128;
  return call.launch(
      kProducts, narrow ? "dot_tiles_bf16" : "dot_tiles_f32",
      gpu::LaunchShape{
          .x = (a.n + columns - 1) / columns, .y = (a.m + 127) / 128, .z = a.batches, .threads = 256},
      a);
}

Status run_expert_dot(const StepCall& call) {
  const DeviceArray &x = call.in[0], &w = call.in[1], &expert = call.in[2], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const std::vector<ir::Axis> n(out.shape().axes.begin() + expert.shape().rank(), out.shape().axes.end());
  const bool stored = w.dtype() == ir::DType::i8;
  args::ExpertDotArgs a = {};
  RETURN_IF_ERROR(set_operands(call, axes_named(x.shape(), call.attrs().strs("over")), n,
                               stored ? &call.in[4] : nullptr, a.dot));
  a.dot.m = expert.count();
  a.expert = expert.at.at;
  a.expert_axes = axes_over(expert.shape().axes, *expert.view);
  a.origin = scalar_of(call.in[3]);
  a.experts = w.shape().size_of(axis);
  a.expert_stride = stride_along(w, axis);
  a.scale_stride = stored ? stride_along(call.in[4], axis) : 0;
  ASSIGN_OR_RETURN(a.dot.a_row, call.table(6, [&] { return offsets_over(expert.shape().axes, *x.view); }));
  if (ir::is_tc16(call.attrs())) return call.launch(kTensorRule, "tensor_expert_dot", out.count(), a);
  return call.launch(kProducts, "expert_dot", out.count(), a);
}

Status run_expert_outer(const StepCall& call) {
  const DeviceArray &x = call.in[0], &y = call.in[1], &expert = call.in[2], &out = call.out[0];
  const std::vector<ir::Axis>& rows = expert.shape().axes;
  const std::vector<std::string> rows_of = expert.shape().names();
  const std::vector<ir::Axis> m = axes_without(x.shape(), rows_of), n = axes_without(y.shape(), rows_of);
  const compile::Contraction& contraction = call.contraction(rows, call.leaves);
  args::ExpertOuterArgs a = {};
  RETURN_IF_ERROR(set_leaves(call, contraction, a));
  a.a = x.at.at;
  a.b = y.at.at;
  a.to = out.at.at;
  a.expert = expert.at.at;
  a.origin = scalar_of(call.in[3]);
  a.type = type_number(x.dtype());
  a.to_type = type_number(out.dtype());
  a.m = count_of(m);
  a.n = count_of(n);
  a.experts = call.attrs().i64("size");
  ASSIGN_OR_RETURN(a.segment_ends, call.table(0, [&] { return contraction.segment_ends; }));
  ASSIGN_OR_RETURN(a.a_row, call.table(1, [&] { return offsets_over(m, *x.view); }));
  ASSIGN_OR_RETURN(a.a_col,
                   call.table(2, [&] { return in_order(offsets_over(rows, *x.view), contraction); }));
  ASSIGN_OR_RETURN(a.b_row,
                   call.table(3, [&] { return in_order(offsets_over(rows, *y.view), contraction); }));
  ASSIGN_OR_RETURN(a.b_col, call.table(4, [&] { return offsets_over(n, *y.view); }));
  ASSIGN_OR_RETURN(a.expert_row,
                   call.table(5, [&] { return in_order(offsets_over(rows, *expert.view), contraction); }));
  if (ir::is_tc16(call.attrs())) return call.launch(kTensorRule, "tensor_expert_outer", out.count(), a);
  return call.launch(kProducts, "expert_outer", out.count(), a);
}

}  // namespace ostro::cuda
