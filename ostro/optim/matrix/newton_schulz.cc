#include "ostro/optim/matrix/newton_schulz.h"

namespace ostro::optim {

// Works on the shorter side, so that A = x x^T is the smaller product. Divided by its Frobenius norm, x has
// singular values of at most 1; each step maps them by the odd polynomial a s + b s^3 + c s^5, which drives
// them towards 1.
Array newton_schulz(const Array& given, int64_t steps, double epsilon, DType dtype) {
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  Axes stack;
  std::vector<int64_t> sizes;
  for (const Axis& a : given.shape().axes)
    if (a.name != kRows && a.name != kColumns) stack.push_back(a.name), sizes.push_back(a.size);
  const bool wide = given.size(kRows) <= given.size(kColumns);
  const std::string side = wide ? kRows : kColumns, far = wide ? kColumns : kRows;
  Axes order = stack;
  order.insert(order.end(), {side, far});
  Array x = transpose(given, order);
  const Array norm = cast(sqrt(box_sumsq(x, stack, sizes)), DType::f32);
  x = x / (norm + static_cast<float>(epsilon));
  const std::string other = "matrix_other", third = "matrix_third";
  for (int64_t i = 0; i < steps; ++i) {
    const Array y = cast(x, dtype);
    const Array square = dot(y, rename(y, side, other), far);  // [side, other], symmetric bit for bit
    const Array s = cast(square, dtype);
    // A A as A A^T, because A is symmetric: of such a product engines compute only half.
    const Array fourth = dot(s, rename(s, side, third), other);
    const Array mix = square * kB + rename(fourth, third, other) * kC;
    // Over `other`: mix [side, other] times x with its side named so.
    x = x * kA + dot(cast(mix, dtype), rename(y, side, other), other);
  }
  return transpose(x, given.shape().names());
}

}  // namespace ostro::optim
