#include "ostro/cuda/steps/step_call.h"

#include <algorithm>

namespace ostro::cuda {

static_assert(static_cast<int>(ir::DType::f32) == args::TYPE_F32 &&
              static_cast<int>(ir::DType::bf16) == args::TYPE_BF16 &&
              static_cast<int>(ir::DType::f64) == args::TYPE_F64 &&
              static_cast<int>(ir::DType::i32) == args::TYPE_I32 &&
              static_cast<int>(ir::DType::i64) == args::TYPE_I64 &&
              static_cast<int>(ir::DType::u32) == args::TYPE_U32 &&
              static_cast<int>(ir::DType::boolean) == args::TYPE_BOOL &&
              static_cast<int>(ir::DType::i8) == args::TYPE_I8);

args::Axes axes_with(const std::vector<ir::Axis>& axes, std::vector<int64_t> strides) {
  args::Axes out = {};
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = axes[i].size, stride = strides[i];
    if (size == 1) continue;
    const auto last = static_cast<size_t>(out.rank) - 1;
    if (out.rank > 0 && out.stride[last] == stride * size) {
      out.size[last] *= size;
      out.stride[last] = stride;
      continue;
    }
    OSTRO_CHECK(out.rank < args::MOST_AXES, "{} axes that do not lie together", axes.size());
    out.size[out.rank] = size;
    out.stride[out.rank++] = stride;
  }
  return out;
}

args::Axes axes_over(const std::vector<ir::Axis>& axes, const compile::View& view) {
  std::vector<int64_t> strides;
  for (const ir::Axis& a : axes) {
    const int64_t at = view.shape.find(a.name);
    strides.push_back(at < 0 ? 0 : view.strides[static_cast<size_t>(at)]);
  }
  return axes_with(axes, std::move(strides));
}

args::Scalar scalar_of(const DeviceArray& integer) { return {integer.at.at, type_number(integer.dtype())}; }

int64_t type_number(ir::DType dtype) { return static_cast<int64_t>(dtype); }

int64_t stride_along(const DeviceArray& a, const std::string& axis) {
  const int64_t at = a.shape().find(axis);
  return at < 0 ? 0 : a.view->strides[static_cast<size_t>(at)];
}

}  // namespace ostro::cuda
