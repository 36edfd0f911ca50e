// The rules of optimizers against plain loops written from docs/reference/optimizers.md; equality of bits.
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

TEST_CASE("schedule-free AdamW equals the formula: y between z and its weighted mean x") {
  ScheduleFreeOptions o;
  o.learning_rate = 3e-3;
  o.warmup = 2;
  double sum = 0;
  for (int64_t step = 0; step < 5; ++step) {
    const double rate = 3e-3 * std::min(1.0, static_cast<double>(step) / 2);
    sum += rate * rate;
    CHECK(step_scalars(o, step, 10)[2] == f(sum > 0 ? rate * rate / sum : 1.0));
  }
  o.warmup = 0;
  check_elements(o, [&](float& p, float* kept, float g, const Floats& s, float decay) {
    float &z = kept[0], &x = kept[1], &v = kept[2];
    if (s[3] > 0) z = x = p;
    v = f(o.beta2) * v + f(1 - o.beta2) * (g * g);
    const float u = g / (std::sqrt(v * s[1]) + f(o.epsilon));
    z = z - s[0] * with_decay(u, decay, p);
    x = x + s[2] * (z - x);
    p = z + f(o.beta1) * (x - z);
  });
}

TEST_CASE("cautious AdamW moves the elements whose update has the sign of the gradient, and these further") {
  AdamOptions o;
  o.cautious = true, o.weight_decay = 0, o.learning_rate = 1;
  const Optimizer optimizer(o, {{"model/weight", {DType::f32, {{"layers", 2}, {"a", 4}}}}}, {{}, {"layers"}});
  DefaultInterpreter use;
  const std::vector<Axis> axes{{"layers", 2}, {"a", 4}};
  const auto update = jit([&](const std::vector<Array>& in) {
    const RuleResults r =
        optimizer.update(0, in[0], {in[1], in[2]}, in[3], in[4], in[5], {in[6], in[7], in[8]});
    return std::vector<Array>{r.p};
  });
  // The first moment is so large that its sign is the update's; v is 1 afterwards, but for the gradient's
  // part.
  const Floats m{1, -1, 1, 1, 1, 1, 1, 1}, g{1e-6f, 1e-6f, 0, -1e-6f, 1e-6f, 1e-6f, 1e-6f, -1e-6f};
  const Floats one(8, 1.0f);
  const auto out =
      update(std::vector<Array>{f32(axes, Floats(8, 0)), f32(axes, m), f32(axes, one), f32(axes, g),
                                f32({}, {1}), f32({}, {1}), f32({}, {1}), f32({}, {1}), f32({}, {1})});
  const auto p = values<float>(out[0]);
  for (const size_t i : {1, 2, 3, 7}) CHECK(p[i] == 0.0f);
  CHECK(std::abs(p[0] / p[4] - 3.0) < 1e-5);  // one of four in the first layer, three in the second
}

TEST_CASE("groups: rates, decay and clipping of their own; globs that match nothing or twice are refused") {
  SgdOptions o;
  o.momentum = 0, o.learning_rate = 1, o.weight_decay = 0.5;
  o.groups["slow"] = {{"*/a"}, 0.25, 0.0, {}};
  o.groups["clipped"] = {{"*/b", "*/c"}, 1, {}, 2.0};
  const Shape shape{DType::f32, {{"x", 1}}};
  const std::vector<std::string> paths{"model/a", "model/b", "model/c", "model/d"};
  std::vector<Parameter> parameters;
  for (const std::string& path : paths) parameters.push_back({path, shape, {}});
  const Optimizer optimizer(o, parameters);
  REQUIRE(optimizer.clip_sets().size() == 2);
  CHECK(optimizer.clip_sets()[0].name == "clipped");
  CHECK(optimizer.clip_sets()[0].parameters == std::vector<size_t>{1, 2});
  CHECK(optimizer.clip_sets()[1].name == "others");
  CHECK(optimizer.clip_sets()[1].parameters == std::vector<size_t>{0, 3});
  DefaultInterpreter use;
  const auto after = [&](size_t k) {
    const auto one = [](float x) { return f32({{"x", 1}}, {x}); };
    const RuleResults r =
        optimizer.update(k, one(1), {one(0)}, one(0.5f), f32({}, {1}), f32({}, {1}), {f32({}, {1})});
    return values<float>(r.p)[0];
  };
  CHECK(after(0) == 1 - 0.25f * 0.5f);   // no decay, a quarter of the rate
  CHECK(after(1) == 1 - (0.5f + 0.5f));  // the optimizer's decay
  CHECK(check_groups(o, paths).ok());
  o.groups["slow"].parameters = {"*/e"};
  CHECK(check_groups(o, paths).error().message().find(
            "optimizer.groups.slow.parameters: \"*/e\" matches no trained parameter") == 0);
  o.groups["slow"].parameters = {"*/b"};
  CommonOptions decayed;
  decayed.weight_decay_modules = {"model/*", "nothing*"};
  CHECK(check_groups(decayed, paths)
            .error()
            .message()
            .find("optimizer.weight_decay_modules: \"nothing*\" matches no trained parameter") !=
        std::string::npos);
  decayed.weight_decay_modules = {"model/*"};
  CHECK(check_groups(decayed, paths).ok());
  CHECK(check_groups(o, paths).error().message().find("model/b is in the groups clipped and slow") !=
        std::string::npos);
}

TEST_CASE("a group with a rule and a rate of its own is updated by them, and keeps that rule's arrays") {
  AdamOptions o;
  o.learning_rate = 0.5, o.weight_decay = 0, o.warmup = 0, o.skip_bad_steps = true, o.ema_beta = 0.5;
  LionRule lion;
  lion.beta1 = 0;
  o.groups["signs"] = {{"*/b"}, 2, {}, {}, 0.125, lion};
  const Shape shape{DType::f32, {{"x", 1}}};
  const Optimizer optimizer(o, {{"model/a", shape, {}}, {"model/b", shape, {}}});
  CHECK(optimizer.scalars() == std::vector<std::string>{"lr", "k1", "k2", "started", "loss_limit"});
  CHECK(optimizer.indices_of(0).size() == 3);
  CHECK(optimizer.indices_of(1).size() == 2);
  const std::vector<float> s = step_scalars(o, 0, 10);
  CHECK(s.size() == 5);
  DefaultInterpreter use;
  const auto one = [](float x) { return f32({{"x", 1}}, {x}); };
  std::vector<Array> scalars;
  for (const float x : s) scalars.push_back(f32({}, {x}));
  const auto after = [&](size_t k, const std::vector<Array>& kept) {
    return optimizer.update(k, one(1), kept, one(3), f32({}, {1}), f32({}, {1}), scalars);
  };
  CHECK(values<float>(after(1, {one(0), one(0)}).p)[0] == 1 - 2 * 0.125f);
  CHECK(std::abs(values<float>(after(0, {one(0), one(0), one(0)}).p)[0] - 0.5f) < 1e-6f);
  CHECK(values<float>(after(1, {one(0), one(0)}).state[1])[0] == 0.5f * (1 + 0.75f));

  o.groups["signs"].optimizer = ScheduleFreeRule();
  CHECK(o.validate(10).error().message().find(
            "optimizer.groups.signs.optimizer: schedule_free keeps a mean") == 0);
  lion.beta2 = 1;
  o.groups["signs"].optimizer = lion;
  CHECK(o.validate(10).error().message().find("optimizer.groups.signs.optimizer.beta2: 1 is not allowed") ==
        0);
}

TEST_CASE("a mean of the weights begins with the first weights") {
  SgdOptions o;
  o.momentum = 0, o.learning_rate = 1, o.weight_decay = 0, o.ema_beta = 0.75;
  const Optimizer optimizer(o, {{"model/a", {DType::f32, {{"x", 1}}}, {}}});
  REQUIRE(optimizer.state().size() == 2);
  CHECK(optimizer.state()[1].name == kAverage);
  DefaultInterpreter use;
  const auto one = [](float x) { return f32({{"x", 1}}, {x}); };
  const auto average = [&](float p, float kept, int64_t step) {
    const std::vector<float> s = step_scalars(o, step, 10);
    const RuleResults r = optimizer.update(0, one(p), {one(0), one(kept)}, one(1), f32({}, {1}), f32({}, {1}),
                                           {f32({}, {s[0]}), f32({}, {s[1]})});
    return values<float>(r.state[1])[0];
  };
  const float rate = step_scalars(o, 3, 10)[0];
  CHECK(average(4, 0, 0) == 4 * 0.75f + 3 * 0.25f);
  CHECK(average(4, 8, 3) == 8 * 0.75f + (4 - rate) * 0.25f);
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

// The bits of a parameter after a step.
Array stepped(const OptimizerOptions& options, const Parameter& parameter) {
  const Optimizer optimizer(options, {parameter});
  const auto& axes = parameter.shape.axes;
  const auto n = static_cast<size_t>(parameter.shape.count());
  const auto update = jit([&](const std::vector<Array>& in) {
    std::vector<Array> state;
    for (const auto& kept : optimizer.state()) state.push_back(zeros(kept.shape.axes));
    return std::vector<Array>{
        optimizer.update(0, in[0], state, in[1], in[2], in[2], {in.begin() + 3, in.end()}).p};
  });
  std::vector<Array> in{f32(axes, wave(n, 1)), f32(axes, wave(n, 2)), f32({}, {1})};
  for (const float x : step_scalars(options, 5, 10)) in.push_back(f32({}, {x}));
  return update(in)[0];
}

TEST_CASE("muP: at four times the width rates and decay are what the rule's powers say") {
  DefaultInterpreter use;
  const auto hidden = [](double width) {
    return Parameter{
        "model/layers/mlp/down/weight", {DType::f32, {{"mlp", 8}, {"embed", 6}}}, {{"mlp"}, {}}, width};
  };
  const auto vector = [](double width) {
    return Parameter{"model/bias", {DType::f32, {{"embed", 6}}}, {}, width};
  };
  const auto scaled = [](auto options, double share) {
    options.learning_rate *= share;
    options.weight_decay /= share;
    return options;
  };
  AdamOptions adam;
  CHECK(same_bits(stepped(adam, hidden(4)), stepped(scaled(adam, 0.25), hidden(1))));
  CHECK_FALSE(same_bits(stepped(adam, hidden(4)), stepped(adam, hidden(1))));
  CHECK(same_bits(stepped(adam, vector(4)), stepped(adam, vector(1))));
  SgdOptions sgd;
  CHECK(same_bits(stepped(sgd, hidden(4)), stepped(sgd, hidden(1))));
  CHECK(same_bits(stepped(sgd, vector(4)), stepped(scaled(sgd, 4), vector(1))));
  MuonOptions muon;
  CHECK(same_bits(stepped(muon, hidden(4)), stepped(muon, hidden(1))));
  muon.use_kimi_scaling = true;
  CHECK(same_bits(stepped(muon, hidden(4)), stepped(scaled(muon, 0.5), hidden(1))));
}

}  // namespace
}  // namespace ostro::optim
