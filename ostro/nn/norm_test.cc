// Norms against plain scalar loops (numerics.md N4).
#include "ostro/nn/norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/trace/arrays_for_test.h"

namespace ostro::nn {
namespace {

using namespace test;

std::vector<float> wave(size_t n, double seed) {
  std::vector<float> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + seed)));
  return out;
}

// Sum and product of six numbers as N4 adds them: six lanes, folded.
float total_of_six(const std::vector<float>& v) { return ((v[0] + v[4]) + v[2]) + ((v[1] + v[5]) + v[3]); }

TEST_CASE("LayerNorm: mean, variance around it, weight, bias") {
  DefaultInterpreter use;
  const auto x = wave(6, 0.1), w = wave(6, 0.7), b = wave(6, 0.4);
  const Axis embed{"embed", 6};
  Norm norm{f32({embed}, w), f32({embed}, b), true};
  const auto y = values<float>(norm(f32({embed}, x)));
  const float mean = total_of_six(x) * (1.0f / 6.0f);
  std::vector<float> c, squares;
  for (const float v : x) c.push_back(v - mean), squares.push_back(c.back() * c.back());
  const float scale = 1.0f / std::sqrt(total_of_six(squares) * (1.0f / 6.0f) + 1e-5f);
  for (size_t i = 0; i < 6; ++i) CHECK(y[i] == (c[i] * scale) * w[i] + b[i]);
}

TEST_CASE("RMSNorm over several axes together; 1 + weight; no weight, no norm") {
  DefaultInterpreter use;
  const auto x = wave(6, 0.1), w = wave(6, 0.7);
  const std::vector<Axis> axes = {{"heads", 2}, {"head_dim", 3}};
  Norm norm{f32(axes, w)};
  norm.axes = {"heads", "head_dim"};
  norm.epsilon = 1e-3;
  norm.one_plus = true;
  const Array in = f32(axes, x);
  const auto y = values<float>(norm(in));
  std::vector<float> squares;
  for (const float v : x) squares.push_back(v * v);
  const float scale = 1.0f / std::sqrt(total_of_six(squares) * (1.0f / 6.0f) + 1e-3f);
  for (size_t i = 0; i < 6; ++i) CHECK(y[i] == (x[i] * scale) * (1.0f + w[i]));
  CHECK(same_bits(Norm()(in), in));
  CHECK(norm(cast(in, DType::bf16)).dtype() == DType::f32);
}

}  // namespace
}  // namespace ostro::nn
