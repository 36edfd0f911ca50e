// AdamW and the global norm against plain loops written from numerics.md N13; equality of bits.
#include "ostro/optim/adamw.h"

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

TEST_CASE("three steps of AdamW equal the formula, each operator rounded once") {
  DefaultInterpreter use;
  AdamOptions o;
  o.learning_rate = 3e-3;
  const std::vector<Axis> axes{{"a", 37}};
  for (const bool decayed : {true, false}) {
    const auto update = jit([&](const std::vector<Array>& in) {
      const AdamResult r = adamw(o, decayed, in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7], in[8]);
      return std::vector<Array>{r.p, r.m, r.v};
    });
    std::vector<float> p = numbers(37, 1), m(37, 0), v(37, 0);
    Array ap = f32(axes, p), am = f32(axes, m), av = f32(axes, v);
    for (int64_t step = 0; step < 3; ++step) {
      const AdamScalars s = adam_scalars(o, step, 10);
      const std::vector<float> g = numbers(37, static_cast<int>(step) + 5);
      const float inv = 1.0f / 3.0f, clip = 0.9f;
      const auto out = update(std::vector<Array>{ap, am, av, f32(axes, g), f32({}, {inv}), f32({}, {clip}),
                                                 f32({}, {s.lr}), f32({}, {s.k1}), f32({}, {s.k2})});
      const auto b1 = static_cast<float>(o.beta1), b2 = static_cast<float>(o.beta2),
                 c1 = static_cast<float>(1 - o.beta1), c2 = static_cast<float>(1 - o.beta2),
                 eps = static_cast<float>(o.epsilon), wd = static_cast<float>(o.weight_decay);
      for (size_t i = 0; i < p.size(); ++i) {
        const float scaled = (g[i] * inv) * clip;
        m[i] = b1 * m[i] + c1 * scaled;
        v[i] = b2 * v[i] + c2 * (scaled * scaled);
        float u = (m[i] * s.k1) / (std::sqrt(v[i] * s.k2) + eps);
        if (decayed) u = u + wd * p[i];
        p[i] = p[i] - s.lr * u;
      }
      ap = out[0], am = out[1], av = out[2];
      CHECK(same_bits(ap, f32(axes, p)));
      CHECK(same_bits(am, f32(axes, m)));
      CHECK(same_bits(av, f32(axes, v)));
    }
  }
  const AdamScalars first = adam_scalars(o, 0, 10);
  CHECK(first.k1 == static_cast<float>(1 / (1 - 0.9)));
  CHECK(first.k2 == static_cast<float>(1 / (1 - 0.95)));
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

TEST_CASE("which parameters decay") {
  AdamOptions o;
  CHECK(decays(o, "model/layers/attention/qkv/weight"));
  CHECK(decays(o, "model/head/weight"));
  CHECK_FALSE(decays(o, "model/layers/attention_norm/weight"));
  CHECK_FALSE(decays(o, "model/norm/weight"));
  CHECK_FALSE(decays(o, "model/embedding/weight"));
  CHECK_FALSE(decays(o, "model/layers/attention/qkv/bias"));
  o.weight_decay_modules = {"*mlp*", "model/*norm/weight"};
  CHECK(decays(o, "model/layers/mlp/down/weight"));
  CHECK(decays(o, "model/norm/weight"));
  CHECK(decays(o, "model/layers/attention_norm/weight"));
  CHECK_FALSE(decays(o, "model/head/weight"));
  o.weight_decay_modules = {"mlp"};  // a glob matches the whole path
  CHECK_FALSE(decays(o, "model/layers/mlp/down/weight"));
  o.weight_decay_modules = std::vector<std::string>{};
  CHECK_FALSE(decays(o, "model/head/weight"));
}

}  // namespace
}  // namespace ostro::optim
