// The rules of optimizers against plain loops written from docs/optimizers.md; equality of bits.
#include <doctest/doctest.h>

#include <cmath>

#include "ostro/optim/optimizer.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::optim {
namespace {

using namespace test;
using Floats = std::vector<float>;

Floats wave(size_t n, int seed) {
  Floats out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i) + seed)) * 0.7f);
  return out;
}

// One element, in place: p, what is kept for it, its gradient, the scalars of the step.
using Element = std::function<void(float& p, float* kept, float g, const Floats& scalars, float decay)>;

// Three steps of a parameter that decays and of one that does not.
void check_elements(const OptimizerOptions& options, const Element& element) {
  DefaultInterpreter use;
  const std::vector<Axis> axes{{"a", 37}};
  for (const bool decayed : {true, false}) {
    const Optimizer optimizer(options, {{decayed ? "model/weight" : "model/norm", {DType::f32, axes}}});
    const size_t kept = optimizer.state().size(), scalars = optimizer.scalars().size();
    const auto update = jit([&](const std::vector<Array>& in) {
      const Array* at = in.data();
      const RuleResults r = optimizer.update(0, at[0], {at + 1, at + 1 + kept}, at[kept + 1], at[kept + 2],
                                             at[kept + 3], {at + kept + 4, at + kept + 4 + scalars});
      std::vector<Array> out{r.p};
      out.insert(out.end(), r.state.begin(), r.state.end());
      return out;
    });
    Floats p = wave(37, 1);
    std::vector<Floats> state(kept, Floats(37, 0));
    for (int64_t step = 0; step < 3; ++step) {
      const Floats s = step_scalars(options, step, 10);
      const Floats g = wave(37, static_cast<int>(step) + 5);
      const float inv = 1.0f / 3.0f, clip = 0.9f;
      std::vector<Array> in{f32(axes, p)};
      for (const Floats& x : state) in.push_back(f32(axes, x));
      in.insert(in.end(), {f32(axes, g), f32({}, {inv}), f32({}, {clip})});
      for (const float x : s) in.push_back(f32({}, {x}));
      const auto out = update(in);
      for (size_t i = 0; i < p.size(); ++i) {
        Floats its;
        for (const Floats& x : state) its.push_back(x[i]);
        const auto decay = static_cast<float>(decayed ? common(options).weight_decay : 0);
        element(p[i], its.data(), (g[i] * inv) * clip, s, decay);
        for (size_t k = 0; k < kept; ++k) state[k][i] = its[k];
      }
      CHECK(same_bits(out[0], f32(axes, p)));
      for (size_t k = 0; k < kept; ++k) CHECK(same_bits(out[k + 1], f32(axes, state[k])));
    }
  }
}

float f(double x) { return static_cast<float>(x); }

float with_decay(float u, float decay, float p) { return decay == 0 ? u : u + decay * p; }

TEST_CASE("AdamW equals the formula, each operator rounded once") {
  AdamOptions o;
  o.learning_rate = 3e-3;
  check_elements(o, [&](float& p, float* kept, float g, const Floats& s, float decay) {
    float &m = kept[0], &v = kept[1];
    m = f(o.beta1) * m + f(1 - o.beta1) * g;
    v = f(o.beta2) * v + f(1 - o.beta2) * (g * g);
    const float u = (m * s[1]) / (std::sqrt(v * s[2]) + f(o.epsilon));
    p = p - s[0] * with_decay(u, decay, p);
  });
  const Floats first = step_scalars(o, 0, 10);
  CHECK(first[1] == f(1 / (1 - 0.9)));
  CHECK(first[2] == f(1 / (1 - 0.95)));
}

TEST_CASE("Lion equals the formula") {
  LionOptions o;
  o.learning_rate = 3e-3;
  check_elements(o, [&](float& p, float* kept, float g, const Floats& s, float decay) {
    const float mean = f(o.beta1) * kept[0] + f(1 - o.beta1) * g;
    const float u = mean > 0 ? 1.0f : mean < 0 ? -1.0f : 0.0f;
    kept[0] = f(o.beta2) * kept[0] + f(1 - o.beta2) * g;
    p = p - s[0] * with_decay(u, decay, p);
  });
}

TEST_CASE("SGD with momentum equals the formula, with Nesterov's step and without") {
  for (const bool nesterov : {false, true}) {
    SgdOptions o;
    o.learning_rate = 3e-3;
    o.nesterov = nesterov;
    check_elements(o, [&](float& p, float* kept, float g, const Floats& s, float decay) {
      kept[0] = f(o.momentum) * kept[0] + g;
      const float u = nesterov ? g + f(o.momentum) * kept[0] : kept[0];
      p = p - s[0] * with_decay(u, decay, p);
    });
  }
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
