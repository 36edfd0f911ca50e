// The global norm against plain loops written from numerics.md N13; equality of bits.
#include "ostro/optim/norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::optim {
namespace {

using namespace test;

std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + seed)) * 0.7f);
  return out;
}

// The sum of N4 in f64: 64 lanes, folded.
double striped(const std::vector<double>& x) {
  double lane[64] = {}, v[16];
  for (size_t r = 0; r < x.size(); ++r) lane[r % 64] += x[r];
  for (int i = 0; i < 16; ++i) v[i] = (lane[i] + lane[16 + i]) + (lane[32 + i] + lane[48 + i]);
  for (int n = 8; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) v[i] = v[i] + v[i + n];
  return v[0];
}

TEST_CASE("the norm: f64 per box, one tree over a parameter's boxes, one over parameters") {
  DefaultInterpreter use;
  // [layers:2, embed:5] with embed in 2 boxes of 3 and 2: boxes (0,0) (0,1) (1,0) (1,1); then [vocab:70]
  // whole.
  const std::vector<float> a = numbers(10, 1), b = numbers(70, 2);
  const auto box = [&](size_t from, size_t n) {
    std::vector<double> squares;
    for (size_t i = from; i < from + n; ++i)
      squares.push_back(static_cast<double>(a[i]) * static_cast<double>(a[i]));
    return striped(squares);
  };
  std::vector<double> rest;
  for (const float x : b) rest.push_back(static_cast<double>(x) * static_cast<double>(x));
  const double total = ((box(0, 3) + box(3, 2)) + (box(5, 3) + box(8, 2))) + striped(rest);
  const float inv = 0.3f;
  const double expected = std::sqrt(total) * static_cast<double>(inv);

  const auto norm_of = [&](std::optional<double> max) {
    const auto f = jit([&](const std::vector<Array>& g, const Array& scale) {
      const GlobalNorm n = global_norm(g, scale, max, {{{"embed", 2}, {"mlp", 4}}, {"layers"}});
      return std::vector<Array>{n.norm, n.clip};
    });
    const auto out =
        f(std::vector<Array>{f32({{"layers", 2}, {"embed", 5}}, a), f32({{"vocab", 70}}, b)}, f32({}, {inv}));
    return std::pair<double, float>(values<double>(out[0])[0], values<float>(out[1])[0]);
  };
  CHECK(norm_of({}) == std::pair(expected, 1.0f));
  CHECK(norm_of(expected) == std::pair(expected, 1.0f));  // equal is not larger
  CHECK(norm_of(2 * expected).second == 1.0f);
  const double below = std::nextafter(expected, 0.0);
  CHECK(norm_of(below).second == static_cast<float>(below / expected));
  CHECK(norm_of(0.5).second == static_cast<float>(0.5 / expected));
}

TEST_CASE("a non-finite gradient makes the norm non-finite, so that the step is refused") {
  DefaultInterpreter use;
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const GlobalNorm n = global_norm({f32({{"a", 3}}, {1, bad, 2})}, f32({}, {1}), 1.0, {});
    CHECK_FALSE(std::isfinite(values<double>(n.norm)[0]));
  }
  // Squares of finite f32 are finite in f64: a large gradient is clipped, not refused.
  const GlobalNorm n = global_norm({f32({{"a", 2}}, {3e30f, 3e30f})}, f32({}, {1}), 1.0, {});
  CHECK(std::isfinite(values<double>(n.norm)[0]));
  CHECK(values<float>(n.clip)[0] == static_cast<float>(1.0 / values<double>(n.norm)[0]));
}

}  // namespace
}  // namespace ostro::optim
