// Routing by hand, and mixtures against plain loops in f64.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "ostro/grad/value_and_grad.h"
#include "ostro/nn/moe.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
#include "ostro/trace/jit.h"

namespace ostro::nn {
namespace {

using namespace test;
using Row = std::vector<double>;

constexpr int64_t kTokens = 5, kEmbed = 6, kMlp = 4, kExperts = 8;

std::vector<float> moe_waves(int64_t n, double seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(0.7 * std::sin(1.7 * static_cast<double>(i) + seed)));
  return out;
}

// A router whose logits are the given ones: x is the identity's rows.
Routed route(const MoeRouting& routing, const std::vector<float>& logits, const Array& bias = {}) {
  const auto experts = static_cast<int64_t>(logits.size());
  return MoeRouter{f32({{"embed", 1}, {"experts", experts}}, logits), bias,
                   routing}(f32({{"pos", 1}, {"embed", 1}}, {1}));
}

std::vector<int32_t> chosen(const MoeRouting& routing, const std::vector<float>& logits,
                            const Array& bias = {}) {
  return values<int32_t>(route(routing, logits, bias).expert);
}

void check_near(const Array& got, const Row& expected) {
  const auto v = values<float>(got);
  REQUIRE(v.size() == expected.size());
  for (size_t i = 0; i < v.size(); ++i)
    CHECK_MESSAGE(std::abs(v[i] - expected[i]) <= 2e-6 * (1 + std::abs(expected[i])), i, ": ", v[i],
                  " against ", expected[i]);
}

Row softmax_of(const Row& x) {
  Row e;
  for (double v : x) e.push_back(std::exp(v));
  const double total = std::accumulate(e.begin(), e.end(), 0.0);
  for (double& v : e) v /= total;
  return e;
}

TEST_CASE("routing: softmax before and after the choice, renormalised, sigmoid, scaled") {
  DefaultInterpreter use;
  const std::vector<float> logits{0.5f, 2, -1, 2, 1};  // a tie: the lower index first
  const Row p = softmax_of({0.5, 2, -1, 2, 1});
  MoeRouting r{.top_k = 3};
  CHECK(chosen(r, logits) == std::vector<int32_t>{1, 3, 4});
  check_near(route(r, logits).gate, {p[1], p[3], p[4]});
  r.renormalize = true, r.scale = 2.5;
  const double sum = p[1] + p[3] + p[4];
  check_near(route(r, logits).gate, {2.5 * p[1] / sum, 2.5 * p[3] / sum, 2.5 * p[4] / sum});
  r = {.top_k = 3, .softmax_chosen = true};
  check_near(route(r, logits).gate, softmax_of({2, 2, 1}));
  r = {.top_k = 2, .sigmoid = true};
  const double s = 1 / (1 + std::exp(-2.0));
  check_near(route(r, logits).gate, {s, s});
  check_near(route(r, logits).scores,
             {1 / (1 + std::exp(-0.5)), s, 1 / (1 + std::exp(1.0)), s, 1 / (1 + std::exp(-1.0))});
}

TEST_CASE("routing: the bias changes the choice, not the gates") {
  DefaultInterpreter use;
  const Array bias = f32({{"experts", 4}}, {0, 0, 1, 0});
  const MoeRouting r{.top_k = 2, .sigmoid = true, .renormalize = true};
  const std::vector<float> logits{1, 2, -1, 0};
  CHECK(chosen(r, logits) == std::vector<int32_t>{1, 0});
  CHECK(chosen(r, logits, bias) == std::vector<int32_t>{2, 1});
  const double a = 1 / (1 + std::exp(1.0)), b = 1 / (1 + std::exp(-2.0));
  check_near(route(r, logits, bias).gate, {a / (a + b), b / (a + b)});
}

TEST_CASE("routing: experts of the best groups only") {
  DefaultInterpreter use;
  // Groups of two: the best expert is in the third, the best pair in the first.
  const std::vector<float> logits{2.9f, 2.8f, 0, 0.1f, 3, -5, 1, 1};
  MoeRouting r{.top_k = 2, .groups = 4, .top_groups = 1};
  CHECK(chosen(r, logits) == std::vector<int32_t>{4, 5});
  r.best_two = true;
  CHECK(chosen(r, logits) == std::vector<int32_t>{0, 1});
  // The pair (1, 1) beats (3, -5).
  CHECK(chosen({.top_k = 3, .softmax_chosen = true, .groups = 4, .top_groups = 2, .best_two = true},
               logits) == std::vector<int32_t>{0, 1, 6});
  const auto message = [&](MoeRouting bad) {
    try {
      route(bad, logits);
    } catch (const TraceError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(message({.top_k = 3, .groups = 4}).find("top_k is 3, but a token can reach 2 of 8") !=
        std::string::npos);
  CHECK(message({.groups = 3}).find("8 experts cannot be cut into 3 groups") != std::string::npos);
  CHECK(message({.groups = 4, .top_groups = 5}).find("top_groups is 5, with 4 groups") != std::string::npos);
  CHECK(message({.top_k = 1, .groups = 8, .best_two = true}).find("best two") != std::string::npos);
}

struct Weights {
  std::vector<float> router = moe_waves(kEmbed * kExperts, 0.2),
                     gate_up = moe_waves(kExperts * kEmbed * 2 * kMlp, 1.1),
                     down = moe_waves(kExperts * kMlp * kEmbed, 0.4),
                     shared_up = moe_waves(kEmbed * 2 * kMlp, 2.2),
                     shared_down = moe_waves(kMlp * kEmbed, 1.9), shared_gate = moe_waves(kEmbed, 0.9);
};

// silu(gate) * up, then down, of weights from `up` and `down` on.
Row gated_mlp(const float* x, const float* up, const float* down) {
  Row y(kEmbed, 0.0);
  for (int64_t m = 0; m < kMlp; ++m) {
    double g = 0, u = 0;
    for (int64_t i = 0; i < kEmbed; ++i) {
      g += static_cast<double>(x[i]) * up[(i * 2) * kMlp + m];
      u += static_cast<double>(x[i]) * up[(i * 2 + 1) * kMlp + m];
    }
    const double h = g / (1 + std::exp(-g)) * u;
    for (int64_t i = 0; i < kEmbed; ++i) y[static_cast<size_t>(i)] += h * down[m * kEmbed + i];
  }
  return y;
}

TEST_CASE("a mixture against plain loops, with and without shared experts") {
  DefaultInterpreter use;
  const Weights w;
  const auto x = moe_waves(kTokens * kEmbed, 0.6);
  Moe moe;
  moe.router.weight = f32({{"embed", kEmbed}, {"experts", kExperts}}, w.router);
  moe.router.routing = {.top_k = 3, .renormalize = true};
  moe.gate_up = f32({{"experts", kExperts}, {"embed", kEmbed}, {"gate_up", 2}, {"mlp", kMlp}}, w.gate_up);
  moe.down = f32({{"experts", kExperts}, {"mlp", kMlp}, {"embed", kEmbed}}, w.down);
  for (int shared = 0; shared < 3; ++shared) {
    if (shared > 0) {
      moe.shared.gate_up = {
          f32({{"embed", kEmbed}, {"gate_up", 2}, {"mlp", kMlp}}, w.shared_up), {}, {"embed"}};
      moe.shared.down = {f32({{"mlp", kMlp}, {"embed", kEmbed}}, w.shared_down), {}, {"mlp"}};
    }
    if (shared == 2) moe.shared_gate = f32({{"embed", kEmbed}}, w.shared_gate);
    const Moe::Result got =
        moe(f32({{"pos", kTokens}, {"embed", kEmbed}}, x), [](const Array& a) { return silu(a); });
    Row expected;
    for (int64_t t = 0; t < kTokens; ++t) {
      const float* row = x.data() + t * kEmbed;
      Row logits(kExperts, 0.0);
      for (size_t e = 0; e < kExperts; ++e)
        for (size_t i = 0; i < kEmbed; ++i)
          logits[e] += static_cast<double>(row[i]) * w.router[i * kExperts + e];
      const Row p = softmax_of(logits);
      std::vector<size_t> order(kExperts);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
      const double total = p[order[0]] + p[order[1]] + p[order[2]];
      Row y(kEmbed, 0.0);
      const auto add = [&](double gate, const Row& part) {
        for (size_t i = 0; i < part.size(); ++i) y[i] += gate * part[i];
      };
      for (size_t s = 0; s < 3; ++s)
        add(p[order[s]] / total, gated_mlp(row, w.gate_up.data() + order[s] * kEmbed * 2 * kMlp,
                                           w.down.data() + order[s] * kMlp * kEmbed));
      double open = 1;
      if (shared == 2) {
        double s = 0;
        for (size_t i = 0; i < kEmbed; ++i) s += static_cast<double>(row[i]) * w.shared_gate[i];
        open = 1 / (1 + std::exp(-s));
      }
      if (shared > 0) add(open, gated_mlp(row, w.shared_up.data(), w.shared_down.data()));
      expected.insert(expected.end(), y.begin(), y.end());
    }
    check_near(got.y, expected);
  }
  const Moe narrow = compute(moe, DType::bf16);
  const Moe::Result rounded =
      narrow(f32({{"pos", kTokens}, {"embed", kEmbed}}, x), [](const Array& a) { return silu(a); });
  CHECK(rounded.y.dtype() == DType::bf16);
  CHECK(
      same_bits(rounded.routed.logits, moe(f32({{"pos", kTokens}, {"embed", kEmbed}}, x), [](const Array& a) {
                                         return silu(a);
                                       }).routed.logits));
}

TEST_CASE(
    "rows are counted as a gradient; load, the balance loss, z-loss and the bias that follows the load") {
  DefaultInterpreter use;
  const Array expert = i32({{"pos", 3}, {"slot", 2}}, {0, 2, 2, 1, 0, 2});
  const Array state = f32({{"experts", 4}}, {0.25f, -1, 3, 0.5f}), weight = f32({{"pos", 3}}, {1, 0, 1});
  const auto run = jit([&](const Array& s) {
    const auto [value, gradient] =
        value_and_grad([&](const Array& x) { return sum(counted(x, expert) * weight, {"pos"}); })(s);
    return std::vector<Array>{value, gradient};
  });
  const std::vector<Array> out = run(state);
  CHECK(values<float>(out[0]) == std::vector<float>{0});
  const Array& counts = out[1];
  CHECK(values<float>(counts) == std::vector<float>{2, 0, 2, 0});
  check_near(counted_load(counts), {0.5, 0, 0.5, 0});
  check_near(counted_load(f32({{"experts", 2}}, {0, 0})), {0, 0});
  const Array scores = f32({{"pos", 2}, {"experts", 4}}, {0.1f, 0.2f, 0.3f, 0.4f, 1, 0, 0, 0});
  check_near(balance_loss(scores, counted_load(counts), 0.01), {0.01 * 4 * 0.2, 0.01 * 4 * 0.5});
  // Every token's scores and the load uniform: the coefficient itself.
  check_near(
      balance_loss(f32({{"pos", 1}, {"experts", 2}}, {0.5f, 0.5f}), f32({{"experts", 2}}, {0.5f, 0.5f}), 0.3),
      {0.3});
  const double lse = std::log(std::exp(1.0) + std::exp(-2.0));
  check_near(router_z_loss(f32({{"pos", 1}, {"experts", 2}}, {1, -2}), 0.001), {0.001 * lse * lse});
  const Array bias = f32({{"experts", 3}}, {0.5f, 0, -0.25f});
  check_near(balanced_bias(bias, f32({{"experts", 3}}, {4, 2, 3}), 0.125), {0.375, 0.125, -0.25});
  check_near(balanced_bias(bias, f32({{"experts", 3}}, {0, 2, 3}), 0.125), {0.625, -0.125, -0.375});
}

}  // namespace
}  // namespace ostro::nn
