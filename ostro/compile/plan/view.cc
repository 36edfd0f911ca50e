#include "ostro/compile/plan/view.h"

#include <algorithm>

namespace ostro::compile {
namespace {

using ir::OpKind;
using ir::Shape;

size_t axis_of(const Shape& s, const std::string& name) { return static_cast<size_t>(s.find(name)); }

}  // namespace

View View::whole(int32_t buffer, const Shape& shape) { return View{buffer, shape, 0, shape.strides()}; }

int64_t View::touched_bytes() const {
  int64_t count = 1;
  for (size_t i = 0; i < strides.size(); ++i)
    if (strides[i] != 0 || shape.axes[i].size == 0) count *= shape.axes[i].size;
  return count * ir::dtype_size(shape.dtype);
}

bool View::dense() const {
  int64_t expected = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    const int64_t size = shape.axes[i].size;
    if (size == 0) return true;
    if (size > 1 && strides[i] != expected) return false;
    expected *= size;
  }
  return true;
}

std::optional<View> apply_layout(const ir::Op& op, size_t result, const View& x, const Shape& out) {
  View v = x;
  v.shape = out;
  switch (op.kind) {
    case OpKind::rename: return v;
    case OpKind::broadcast:
      v.strides.assign(out.axes.size(), 0);
      for (size_t i = 0; i < x.strides.size(); ++i)
        v.strides[axis_of(out, x.shape.axes[i].name)] = x.strides[i];
      return v;
    case OpKind::transpose:
      for (size_t i = 0; i < out.axes.size(); ++i)
        v.strides[i] = x.strides[axis_of(x.shape, out.axes[i].name)];
      return v;
    case OpKind::split_axis: {
      const size_t at = axis_of(x.shape, op.attrs.str("axis"));
      const auto& sizes = op.attrs.ints("sizes");
      std::vector<int64_t> parts(sizes.size());
      int64_t stride = x.strides[at];
      for (size_t i = sizes.size(); i-- > 0;) {
        parts[i] = stride;
        stride *= sizes[i];
      }
      v.strides.erase(v.strides.begin() + static_cast<int64_t>(at));
      v.strides.insert(v.strides.begin() + static_cast<int64_t>(at), parts.begin(), parts.end());
      return v;
    }
    case OpKind::merge_axes: {
      const auto& axes = op.attrs.strs("axes");
      const size_t at = axis_of(x.shape, axes[0]);
      // Neighbours with more than one index must lie together: outer stride = inner stride * inner size.
      int64_t stride = 0, span = 0;
      bool first = true;
      for (size_t i = at + axes.size(); i-- > at;) {
        const int64_t size = x.shape.axes[i].size;
        if (size == 1) continue;
        if (first) {
          stride = x.strides[i];
          span = stride * size;
          first = false;
        } else if (x.strides[i] != span) {
          return std::nullopt;
        } else {
          span *= size;
        }
      }
      v.strides.erase(v.strides.begin() + static_cast<int64_t>(at),
                      v.strides.begin() + static_cast<int64_t>(at + axes.size()));
      v.strides.insert(v.strides.begin() + static_cast<int64_t>(at), stride);
      return v;
    }
    case OpKind::slice: {
      const size_t at = axis_of(x.shape, op.attrs.str("axis"));
      v.offset += op.attrs.i64("start") * x.strides[at];
      v.strides[at] *= op.attrs.i64("stride", 1);
      return v;
    }
    case OpKind::split: {
      const size_t at = axis_of(x.shape, op.attrs.str("axis"));
      const auto& sizes = op.attrs.ints("sizes");
      for (size_t i = 0; i < result; ++i) v.offset += sizes[i] * x.strides[at];
      return v;
    }
    case OpKind::unstack: {
      const size_t at = axis_of(x.shape, op.attrs.str("axis"));
      v.offset += static_cast<int64_t>(result) * x.strides[at];
      v.strides.erase(v.strides.begin() + static_cast<int64_t>(at));
      return v;
    }
    case OpKind::reverse: {
      const size_t at = axis_of(x.shape, op.attrs.str("axis"));
      v.offset += (x.shape.axes[at].size - 1) * x.strides[at];
      v.strides[at] = -v.strides[at];
      return v;
    }
    default: return std::nullopt;
  }
}

}  // namespace ostro::compile
