// Layout: every result element is one operand element (or +0), bits unchanged.
#include <algorithm>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"

namespace ostro::interp {

Result<Buffers> run_reorder(const Call& call) {
  return Buffers{pick(call.in[0], call.out[0], offsets(call.out[0].axes, call.shape(0)))};
}

Result<Buffers> run_reshape(const Call& call) { return Buffers{call.in[0].with_shape(call.out[0])}; }

Result<Buffers> run_slice(const Call& call) {
  const auto& attrs = call.op.attrs;
  return Buffers{pick(
      call.in[0], call.out[0],
      part(call.shape(0), attrs.str("axis"), attrs.i64("start"), attrs.i64("size"), attrs.i64("stride", 1)))};
}

Result<Buffers> run_pad(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  Buffer out = Buffer::zeros(call.out[0]);
  place(out, call.in[0], part(call.out[0], axis, call.op.attrs.i64("low"), call.shape(0).size_of(axis)));
  return Buffers{out};
}

Result<Buffers> run_concat(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  Buffer out = Buffer::zeros(call.out[0]);
  int64_t start = 0;
  for (const Buffer& x : call.in) {
    const int64_t size = x.shape().size_of(axis);
    place(out, x, part(call.out[0], axis, start, size));
    start += size;
  }
  return Buffers{out};
}

Result<Buffers> run_split(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  Buffers parts;
  int64_t start = 0;
  for (const Shape& shape : call.out) {
    parts.push_back(pick(call.in[0], shape, part(call.shape(0), axis, start, shape.size_of(axis))));
    start += shape.size_of(axis);
  }
  return parts;
}

Result<Buffers> run_stack(const Call& call) {
  Buffer out = Buffer::zeros(call.out[0]);
  for (size_t i = 0; i < call.in.size(); ++i)
    place(out, call.in[i], part(call.out[0], call.op.attrs.str("axis"), static_cast<int64_t>(i), 1));
  return Buffers{out};
}

Result<Buffers> run_unstack(const Call& call) {
  Buffers parts;
  for (size_t i = 0; i < call.out.size(); ++i)
    parts.push_back(pick(call.in[0], call.out[i],
                         part(call.shape(0), call.op.attrs.str("axis"), static_cast<int64_t>(i), 1)));
  return parts;
}

Result<Buffers> run_reverse(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t n = call.shape(0).size_of(axis);
  return Buffers{pick(call.in[0], call.out[0], part(call.shape(0), axis, n - 1, n, -1))};
}

Result<Buffers> run_dynamic_slice(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t size = call.op.attrs.i64("size");
  const int64_t start =
      std::clamp<int64_t>(call.in[1].item<int32_t>(), 0, call.shape(0).size_of(axis) - size);
  return Buffers{pick(call.in[0], call.out[0], part(call.shape(0), axis, start, size))};
}

Result<Buffers> run_dynamic_update_slice(const Call& call) {
  const Shape &x = call.shape(0), &update = call.shape(1);
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t last_start = x.size_of(axis) - update.size_of(axis);
  const int64_t stride = stride_of(x, axis);
  const std::vector<int64_t> starts = integers(call.in[2]);
  const std::vector<int64_t> start_at = offsets(update.axes, call.shape(2));
  std::vector<int64_t> to = offsets(update.axes, x);
  for (size_t i = 0; i < to.size(); ++i)
    to[i] += std::clamp<int64_t>(starts[start_at[i]], 0, last_start) * stride;
  Buffer out = Buffer::copy_of(x, call.in[0].bytes().data());
  place(out, call.in[1], to);
  return Buffers{out};
}

}  // namespace ostro::interp
