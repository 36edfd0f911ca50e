#include "ostro/nn/linear.h"

namespace ostro::nn {

Array cast_like(const Array& x, const Array& parameter, Loc loc) {
  return cast(x, parameter.use_dtype().value_or(parameter.dtype()), loc);
}

Array Linear::operator()(const Array& x, Loc loc) const {
  const DType dtype = weight.use_dtype().value_or(weight.dtype());
  const Array y = dot(cast(x, dtype, loc), weight, in, dtype, loc);
  if (!bias.valid()) return y;
  return cast(Operand(y, loc) + Operand(bias, loc), dtype, loc);
}

Array RmsNorm::operator()(const Array& x, Loc loc) const {
  const Operand v(x, loc);
  const Array mean_square = mean(v * v, {axis}, loc);
  const Array scale = rsqrt(Operand(mean_square, loc) + Operand(epsilon, loc), loc);
  return Operand(v * Operand(scale, loc), loc) * Operand(weight, loc);
}

}  // namespace ostro::nn
