#include <algorithm>

#include "ostro/cuda/routines/routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kLayout = "routines/layout.cu";

args::CopyArgs copy_of(const DeviceArray& from, const DeviceArray& to) {
  args::CopyArgs a = {};
  a.from = from.at.at;
  a.to = to.at.at;
  a.element_bytes = ir::dtype_size(from.dtype());
  a.count = from.count();
  a.from_axes = axes_with(from.shape().axes, from.view->strides);
  a.to_axes = axes_with(from.shape().axes, to.view->strides);
  return a;
}

}  // namespace

DevicePart part_of(const DeviceArray& whole, const std::string& axis, int64_t start, int64_t size) {
  DevicePart p{*whole.view, whole.at + start * stride_along(whole, axis) * ir::dtype_size(whole.dtype())};
  p.view.shape.axes[static_cast<size_t>(whole.shape().find(axis))].size = size;
  return p;
}

Status fill_zero(const StepCall& call, gpu::Address to, int64_t bytes) {
  if (call.kernels.fast(Fast::kReductions)) return fill_words(call, to, bytes);
  return call.launch(kLayout, "fill_zero", bytes, args::FillArgs{to.at, bytes});
}

Status copy_view(const StepCall& call, const DeviceArray& from, const DeviceArray& to) {
  if (from.count() == 0) return Status();
  if (call.kernels.fast(Fast::kReductions)) return copy_runs(call, from, to);
  if (from.view->dense() && to.view->dense()) return call.device().copy(to.at, from.at, from.shape().bytes());
  return call.launch(kLayout, "copy_elements", from.count(), copy_of(from, to));
}

Status run_concat(const StepCall& call) {
  const std::string& axis = call.attrs().str("axis");
  int64_t start = 0;
  for (const DeviceArray& x : call.in) {
    if (call.step.op == ir::OpKind::concat) {
      const int64_t size = x.shape().size_of(axis);
      RETURN_IF_ERROR(copy_view(call, x, part_of(call.out[0], axis, start, size).array()));
      start += size;
    } else {
      DevicePart p = part_of(call.out[0], axis, start++, 1);
      const int64_t at = p.view.shape.find(axis);
      p.view.shape.axes.erase(p.view.shape.axes.begin() + at);
      p.view.strides.erase(p.view.strides.begin() + at);
      RETURN_IF_ERROR(copy_view(call, x, p.array()));
    }
  }
  return Status();
}

Status run_pad(const StepCall& call) {
  const std::string& axis = call.attrs().str("axis");
  RETURN_IF_ERROR(fill_zero(call, call.out[0].at, call.out[0].shape().bytes()));
  return copy_view(
      call, call.in[0],
      part_of(call.out[0], axis, call.attrs().i64("low"), call.in[0].shape().size_of(axis)).array());
}

Status run_dynamic_slice(const StepCall& call) {
  const std::string& axis = call.attrs().str("axis");
  const int64_t size = call.attrs().i64("size");
  const DevicePart first = part_of(call.in[0], axis, 0, size);
  args::CopyArgs a = copy_of(first.array(), call.out[0]);
  a.starts = call.in[1].at.at;
  a.limit = call.in[0].shape().size_of(axis) - size;
  a.from_step = stride_along(call.in[0], axis);
  return call.launch(kLayout, "copy_elements", a.count, a);
}

Status run_dynamic_update_slice(const StepCall& call) {
  const DeviceArray &x = call.in[0], &update = call.in[1], &starts = call.in[2], &out = call.out[0];
  const std::string& axis = call.attrs().str("axis");
  const int64_t size = update.shape().size_of(axis);
  if (!(x.at == out.at)) RETURN_IF_ERROR(call.device().copy(out.at, x.at, x.shape().bytes()));
  const DevicePart first = part_of(out, axis, 0, size);
  args::CopyArgs a = copy_of(update, first.array());
  a.starts = starts.at.at;
  a.start_axes = axes_over(update.shape().axes, *starts.view);
  a.limit = x.shape().size_of(axis) - size;
  a.to_step = stride_along(out, axis);
  return call.launch(kLayout, "copy_elements", a.count, a);
}

Status run_shard_slice(const StepCall& call) {
  return copy_view(
      call,
      part_of(call.in[0], call.attrs().str("axis"), call.attrs().i64("start"), call.attrs().i64("size"))
          .array(),
      call.out[0]);
}

Status run_dequantize(const StepCall& call) {
  const DeviceArray &w = call.in[0], &scales = call.in[1];
  const auto& over = call.attrs().strs("over");
  args::DequantizeArgs a = {
      w.at.at, scales.at.at, call.out[0].at.at, type_number(call.out[0].dtype()), 1, 1, 1, 1};
  a.groups = scales.shape().size_of(call.attrs().str("groups"));
  const int64_t first = w.shape().find(over[0]), end = first + static_cast<int64_t>(over.size());
  for (int64_t i = 0; i < w.shape().rank(); ++i)
    (i < first ? a.before : i < end ? a.rows : a.after) *= w.shape().axes[static_cast<size_t>(i)].size;
  return call.launch(kLayout, "dequantize", call.out[0].count(), a);
}

}  // namespace ostro::cuda
