#include "ostro/nn/rope.h"

#include "ostro/numerics/functions.h"

namespace ostro::nn {

std::vector<float> rope_frequencies(int64_t head_dim, double theta, const RopeScaling& s) {
  constexpr double kPi = 3.141592653589793;
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double f = numerics::pow_f64(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    double scaled = f;
    if (s.factor != 1) {
      // Short wavelengths stay as they are, long ones are stretched by the factor, those between are a linear
      // blend of both.
      const double wavelength = 2 * kPi / f;
      const double low = s.original_max_position_embeddings / s.low_freq_factor;
      const double high = s.original_max_position_embeddings / s.high_freq_factor;
      if (wavelength > low) {
        scaled = f / s.factor;
      } else if (wavelength >= high) {
        const double blend = (s.original_max_position_embeddings / wavelength - s.low_freq_factor) /
                             (s.high_freq_factor - s.low_freq_factor);
        scaled = (1 - blend) * (f / s.factor) + blend * f;
      }
    }
    out.push_back(static_cast<float>(scaled));
  }
  return out;
}

Rope Rope::at(const Array& positions, const std::vector<float>& frequencies) {
  const Array f(runtime::Buffer::copy_of(
      Shape{DType::f32, {{"half", static_cast<int64_t>(frequencies.size())}}}, frequencies.data()));
  const Array angle = cast(positions, DType::f32) * f;
  return Rope{ostro::cos(angle), ostro::sin(angle)};
}

Array Rope::operator()(const Array& x, Loc loc) const {
  const Array halves = split_axis(x, "head_dim", {{"rotate", 2}, {"half", x.size("head_dim") / 2}}, loc);
  const auto [a, b] = unstack<2>(halves, "rotate", loc);
  auto op = [&](const Array& v) { return Operand(v, loc); };
  const Array first = op(op(a) * op(cos)) - op(op(b) * op(sin));
  const Array second = op(op(b) * op(cos)) + op(op(a) * op(sin));
  return merge_axes(stack({first, second}, "rotate", first.shape().find("half"), loc), {"rotate", "half"},
                    "head_dim", loc);
}

}  // namespace ostro::nn
