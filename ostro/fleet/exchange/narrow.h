// narrowed, widened: f32 arrays on the host that have bf16 values, as bf16 and back
// (numerics.slice_partials). Both keep every value. Pure functions; there are no errors.
#pragma once

#include "ostro/numerics/arrays.h"
#include "ostro/runtime/buffer.h"

namespace ostro::fleet {

inline runtime::Buffer narrowed(const runtime::Buffer& x) {
  runtime::Buffer out = runtime::Buffer::empty(x.shape().with_dtype(ir::DType::bf16));
  numerics::narrow(x.as<float>(), out.mutable_bytes());
  return out;
}

inline runtime::Buffer widened(const runtime::Buffer& x) {
  runtime::Buffer out = runtime::Buffer::empty(x.shape().with_dtype(ir::DType::f32));
  numerics::widen(x.bytes(), out.mutable_bytes());
  return out;
}

}  // namespace ostro::fleet
