// LoRA on any model of Linears: what is drawn, what is added, what targets choose, and merging.
#include "ostro/nn/adapters.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/nn/adapter_of_row.h"
#include "ostro/nn/policy.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
#include "ostro/trace/jit.h"

namespace ostro::nn {
namespace {

using namespace test;

struct Pair {
  Linear qkv, down, head;
  OSTRO_FIELDS(qkv, down, head)
};

std::vector<float> waves(int64_t n, double seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::cos(1.3 * static_cast<double>(i) + seed)));
  return out;
}

Pair pair() {
  Pair m;
  m.qkv = {f32({{"embed", 4}, {"heads", 2}, {"qkv", 4}, {"width", 3}}, waves(96, 0.1)),
           {},
           {"embed"},
           {"qkv", {{"q_proj", 2}, {"k_proj", 1}, {"v_proj", 1}}}};
  m.down = {
      f32({{"layers", 2}, {"mlp", 6}, {"embed", 4}}, waves(48, 0.5)), {}, {"mlp"}, {"", {{"down_proj"}}}};
  m.head = {f32({{"embed", 4}, {"vocab", 5}}, waves(20, 0.9)), {}, {"embed"}};
  return m;
}

std::vector<std::string> leaf_paths(const Pair& m) {
  std::vector<std::string> out;
  for_each_leaf(m, [&](const std::string& path, const Array&) { out.push_back(path); });
  return out;
}

TEST_CASE("adapters on all matrices but the head, or on those that a glob names") {
  DefaultInterpreter use;
  std::vector<AdaptedMatrix> matrices;
  LoraSpec spec;
  spec.rank = 2;
  const Pair all = with_lora(pair(), spec, make_key(3), matrices);
  CHECK(leaf_paths(all) ==
        std::vector<std::string>{"qkv/weight", "qkv/lora/q_proj/a", "qkv/lora/q_proj/b", "qkv/lora/k_proj/a",
                                 "qkv/lora/k_proj/b", "qkv/lora/v_proj/a", "qkv/lora/v_proj/b", "down/weight",
                                 "down/lora/down_proj/a", "down/lora/down_proj/b", "head/weight"});
  CHECK(matrices.size() == 5);
  CHECK(matrices[4].path() == "model/head/head");
  CHECK_FALSE(matrices[4].has_adapter);
  CHECK(all.qkv.lora[0].b.shape().str() == "f32[rank:2, heads:2, qkv:2, width:3]");
  CHECK(all.down.lora[0].a.shape().str() == "f32[layers:2, mlp:6, rank:2]");
  CHECK(all.down.lora[0].b.shape().str() == "f32[layers:2, rank:2, embed:4]");
  spec.targets = {"v_proj", "model/head/*"};
  CHECK(leaf_paths(with_lora(pair(), spec, make_key(3), matrices)) ==
        std::vector<std::string>{"qkv/weight", "qkv/lora/v_proj/a", "qkv/lora/v_proj/b", "down/weight",
                                 "head/weight", "head/lora/head/a", "head/lora/head/b"});
}

TEST_CASE("a is uniform within 1 / sqrt(inputs) and drawn by its path, b is zero: nothing changes at first") {
  DefaultInterpreter use;
  std::vector<AdaptedMatrix> matrices;
  LoraSpec spec;
  spec.rank = 64;
  const Pair base = pair(), all = with_lora(base, spec, make_key(3), matrices);
  spec.targets = {"v_proj"};
  const Pair one = with_lora(base, spec, make_key(3), matrices);
  CHECK(same_bits(all.qkv.lora[2].a, one.qkv.lora[0].a));
  float most = 0;
  double total = 0;
  for (const float v : values<float>(all.qkv.lora[0].a)) most = std::max(most, std::abs(v)), total += v;
  CHECK(most <= 0.5f);
  CHECK(most > 0.48f);
  CHECK(std::abs(total / 256) < 0.05);
  const Array x = f32({{"pos", 3}, {"embed", 4}}, waves(12, 0.3));
  CHECK(same_bits(all.qkv(x), base.qkv(x)));
  CHECK(same_bits(compute(all, DType::bf16).qkv(x), compute(base, DType::bf16).qkv(x)));
}

TEST_CASE("x w + scale (x a) b, each part of a fused weight for itself; a merged weight gives the same") {
  DefaultInterpreter use;
  std::vector<AdaptedMatrix> matrices;
  LoraSpec spec;
  spec.rank = 2;
  spec.scale = 0.75;
  spec.targets = {"q_proj", "v_proj"};
  Pair m = with_lora(pair(), spec, make_key(3), matrices);
  for (LowRank& p : m.qkv.lora) p.b = f32(p.b.shape().axes, waves(p.b.shape().count(), 0.2));
  const Array x = f32({{"embed", 4}}, waves(4, 0.3));
  const auto y = values<float>(m.qkv(x)), base = values<float>(pair().qkv(x)),
             merged = values<float>(without_lora(m).qkv(x));
  const auto xs = values<float>(x);
  for (size_t h = 0; h < 2; ++h)
    for (size_t i = 0; i < 4; ++i)
      for (size_t w = 0; w < 3; ++w) {
        const size_t at = (h * 4 + i) * 3 + w;
        double more = 0;
        if (i != 2) {
          const LowRank& p = m.qkv.lora[i < 2 ? 0 : 1];
          const auto a = values<float>(p.a), b = values<float>(p.b);
          const size_t count = i < 2 ? 2 : 1, part = i < 2 ? i : 0;
          for (size_t r = 0; r < 2; ++r) {
            double low = 0;
            for (size_t e = 0; e < 4; ++e)
              low += static_cast<double>(xs[e]) * static_cast<double>(a[e * 2 + r]);
            more += low * static_cast<double>(b[((r * 2 + h) * count + part) * 3 + w]);
          }
        }
        CHECK(static_cast<double>(y[at] - base[at]) == doctest::Approx(0.75 * more).epsilon(1e-4));
        CHECK(merged[at] == doctest::Approx(y[at]).epsilon(1e-5));
        if (i == 2) CHECK(y[at] == base[at]);
      }
  CHECK_FALSE(tree_signature(m) == tree_signature(pair()));
}

// One Linear with adapters whose factors are not zero, drawn by their numbers.
Linear adapted_qkv(const std::vector<int>& numbers, bool side_by_side) {
  Linear out = pair().qkv;
  const auto factor = [&](std::vector<ir::Axis> axes, double seed) {
    std::vector<float> all;
    for (const int number : numbers) {
      const std::vector<float> one = waves(ir::Shape{DType::f32, axes}.count(), seed + 10.0 * number);
      all.insert(all.end(), one.begin(), one.end());
    }
    if (side_by_side) axes.insert(axes.begin(), {kAdaptersAxis, std::ssize(numbers)});
    return f32(axes, all);
  };
  const std::vector<std::pair<std::string, int64_t>> parts = {{"q_proj", 2}, {"v_proj", 1}};
  for (const auto& [name, count] : parts)
    out.lora.push_back({factor({{"embed", 4}, {"rank", 2}}, 0.2),
                        factor({{"rank", 2}, {"heads", 2}, {"qkv", count}, {"width", 3}}, 0.3), name, 0.5});
  return out;
}

TEST_CASE("with several adapters each row has what it has with its own alone, or without one") {
  DefaultInterpreter use;
  const Array x = f32({{"batch", 1}, {"pos", 4}, {"embed", 4}}, waves(16, 0.7));
  const std::vector<int32_t> chosen = {1, -1, 2, 0};
  const auto together = jit([](const Linear& linear, const Array& rows, const Array& adapter) {
    const AdapterOfRow of_row(adapter);
    return linear(rows);
  });
  const Array all = together(adapted_qkv({0, 1, 2}, true), x, i32({{"batch", 1}, {"pos", 4}}, chosen));
  for (int64_t row = 0; row < 4; ++row) {
    const int32_t number = chosen[static_cast<size_t>(row)];
    const Linear alone = number < 0 ? pair().qkv : adapted_qkv({number}, false);
    CHECK(same_bits(slice(all, "pos", row, 1), slice(alone(x), "pos", row, 1)));
    CHECK_FALSE(same_bits(slice(all, "pos", row, 1), slice(adapted_qkv({3}, false)(x), "pos", row, 1)));
  }
}

TEST_CASE("several adapters, and nothing that says which: an error") {
  DefaultInterpreter use;
  CHECK_THROWS_AS(adapted_qkv({0, 1}, true)(f32({{"pos", 1}, {"embed", 4}}, waves(4, 0))), TraceError);
  std::vector<AdaptedMatrix> matrices;
  const Pair all = with_lora(pair(), {.rank = 2, .targets = {}, .adapters = 3}, make_key(3), matrices);
  CHECK(all.down.lora[0].a.shape().str() == "f32[layers:2, adapters:3, mlp:6, rank:2]");
  CHECK(all.down.lora[0].b.shape().str() == "f32[layers:2, adapters:3, rank:2, embed:4]");
}

}  // namespace
}  // namespace ostro::nn
