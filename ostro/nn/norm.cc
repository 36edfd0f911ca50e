#include "ostro/nn/norm.h"

#include "ostro/nn/read_in_f32.h"

namespace ostro::nn {

Array Norm::operator()(const Array& x, Loc loc) const {
  if (!valid()) return x;
  const auto op = [&](const Array& a) { return Operand(a, loc); };
  const Array c = centered ? op(x) - op(mean(x, axes, loc)) : x;
  const Array mean_square = mean(op(c) * op(c), axes, loc);
  const Array scale = rsqrt(op(mean_square) + Operand(epsilon, loc), loc);
  const auto read = [&](const Array& a) { return in_f32 ? read_in_f32(a) : a; };
  const Array factor = one_plus ? Operand(1.0, loc) + op(read(weight)) : read(weight);
  const Array y = op(op(c) * op(scale)) * op(factor);
  return bias.valid() ? op(y) + op(read(bias)) : y;
}

}  // namespace ostro::nn
