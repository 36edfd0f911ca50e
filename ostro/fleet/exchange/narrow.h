// narrowed, widened: f32 arrays on the host that have bf16 values, as bf16 and back
// (numerics.slice_partials). Both keep every value. Pure functions; there are no errors.
#pragma once

#include <algorithm>

#include "ostro/numerics/bf16.h"
#include "ostro/runtime/buffer.h"

namespace ostro::fleet {

inline runtime::Buffer narrowed(const runtime::Buffer& x) {
  runtime::Buffer out = runtime::Buffer::empty(x.shape().with_dtype(ir::DType::bf16));
  std::ranges::transform(x.as<float>(), out.mutable_as<numerics::Bf16>().begin(), numerics::to_bf16);
  return out;
}

inline runtime::Buffer widened(const runtime::Buffer& x) {
  runtime::Buffer out = runtime::Buffer::empty(x.shape().with_dtype(ir::DType::f32));
  std::ranges::transform(x.as<numerics::Bf16>(), out.mutable_as<float>().begin(),
                         [](numerics::Bf16 value) { return numerics::to_f32(value); });
  return out;
}

}  // namespace ostro::fleet
