#include "ostro/nn/rope.h"

#include <algorithm>
#include <cmath>

#include "ostro/numerics/functions.h"

namespace ostro::nn {
namespace {

constexpr double kPi = 3.141592653589793;

double plain_frequency(double theta, int64_t i, int64_t head_dim) {
  return numerics::pow_f64(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
}

}  // namespace

std::vector<float> rope_frequencies(int64_t head_dim, double theta, const RopeScaling& s) {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double f = plain_frequency(theta, i, head_dim);
    double scaled = f;
    if (s.factor != 1) {
      // Short wavelengths are unchanged, long ones are stretched by the factor, those between are a linear
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

std::vector<float> linear_rope_frequencies(int64_t head_dim, double theta, double factor) {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i)
    out.push_back(static_cast<float>(plain_frequency(theta, i, head_dim) / factor));
  return out;
}

std::vector<float> divided_rope_frequencies(int64_t head_dim, double theta,
                                            const std::vector<double>& factors) {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i)
    out.push_back(static_cast<float>(plain_frequency(theta, i, head_dim) /
                                     factors[factors.size() == 1 ? 0 : static_cast<size_t>(i)]));
  return out;
}

std::vector<float> yarn_rope_frequencies(int64_t head_dim, double theta, const YarnScaling& s) {
  const auto dim = static_cast<double>(head_dim);
  // The (fractional) index of the frequency that turns `turns` times within the original context.
  const auto index_of = [&](double turns) {
    return dim * numerics::log_f64(s.original_max_position_embeddings / (turns * 2 * kPi)) /
           (2 * numerics::log_f64(theta));
  };
  double low = index_of(s.beta_fast), high = index_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;  // no division by zero
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double f = plain_frequency(theta, i, head_dim);
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out.push_back(static_cast<float>(ramp * (f / s.factor) + (1 - ramp) * f));
  }
  return out;
}

Rope Rope::at(const Array& positions, const std::vector<float>& frequencies, double scale) {
  const Array f(runtime::Buffer::copy_of(
      Shape{DType::f32, {{"half", static_cast<int64_t>(frequencies.size())}}}, frequencies.data()));
  const Array angle = cast(positions, DType::f32) * f;
  if (scale == 1) return Rope{ostro::cos(angle), ostro::sin(angle)};
  return Rope{ostro::cos(angle) * scale, ostro::sin(angle) * scale};
}

// Only the first 2 * half elements are rotated; the rest goes round in f32. `rotate` is the axis of a pair,
// outer or, interleaved, inner.
Array Rope::operator()(const Array& x, Loc loc) const {
  auto op = [&](const Array& v) { return Operand(v, loc); };
  const int64_t width = x.size("head_dim"), half = cos.size("half");
  if (width > 2 * half) {
    const auto parts = split(x, "head_dim", {2 * half, width - 2 * half}, loc);
    return concat({(*this)(parts[0], loc), cast(parts[1], DType::f32, loc)}, "head_dim", loc);
  }
  const std::vector<Axis> pairs = interleaved ? std::vector<Axis>{{"half", half}, {"rotate", 2}}
                                              : std::vector<Axis>{{"rotate", 2}, {"half", half}};
  const auto [a, b] = unstack<2>(split_axis(x, "head_dim", pairs, loc), "rotate", loc);
  const Array first = op(op(a) * op(cos)) - op(op(b) * op(sin));
  const Array second = op(op(b) * op(cos)) + op(op(a) * op(sin));
  const int64_t at = first.shape().find("half");
  return merge_axes(stack({first, second}, "rotate", interleaved ? at + 1 : at, loc),
                    {pairs[0].name, pairs[1].name}, "head_dim", loc);
}

}  // namespace ostro::nn
