// Layers against plain scalar loops, initial values, and Llama 3's stretched frequencies.
#include <doctest/doctest.h>

#include <cmath>

#include "ostro/nn/init.h"
#include "ostro/nn/linear.h"
#include "ostro/nn/norm.h"
#include "ostro/nn/policy.h"
#include "ostro/nn/rope.h"
#include "ostro/numerics/functions.h"
#include "ostro/trace/arrays_for_test.h"

namespace ostro::nn {
namespace {

using namespace test;

std::vector<float> numbers(int64_t n, double seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + seed)));
  return out;
}

TEST_CASE("Norm of one axis: the squares in lanes of N4") {
  DefaultInterpreter use;
  const auto x = numbers(2 * 5, 0.1), w = numbers(5, 0.7);
  Norm norm;
  norm.weight = f32({{"embed", 5}}, w);
  const auto y = values<float>(norm(f32({{"pos", 2}, {"embed", 5}}, x)));
  for (size_t r = 0; r < 2; ++r) {
    // Five squares in five lanes of N4, folded.
    float q[8] = {};
    for (size_t i = 0; i < 5; ++i) q[i] = x[r * 5 + i] * x[r * 5 + i];
    const float total = ((q[0] + q[4]) + q[2]) + (q[1] + q[3]);
    const float scale = 1.0f / std::sqrt(total * (1.0f / 5.0f) + 1e-5f);
    for (size_t i = 0; i < 5; ++i) CHECK(y[r * 5 + i] == (x[r * 5 + i] * scale) * w[i]);
  }
  CHECK(norm(cast(f32({{"embed", 5}}, w), DType::bf16)).dtype() == DType::f32);
}

TEST_CASE("Linear contracts in the order of its input axes, adds the bias, and gives the compute dtype") {
  DefaultInterpreter use;
  const auto x = numbers(2 * 3, 0.1), w = numbers(3 * 2 * 4, 0.7), b = numbers(4, 0.3);
  const Linear linear{f32({{"a", 3}, {"b", 2}, {"out", 4}}, w), f32({{"out", 4}}, b), {"b", "a"}};
  const Array in = f32({{"a", 3}, {"b", 2}}, x);
  const auto y = values<float>(linear(in));
  for (size_t o = 0; o < 4; ++o) {
    float acc = 0;
    for (size_t j = 0; j < 2; ++j)
      for (size_t i = 0; i < 3; ++i) acc = std::fma(x[i * 2 + j], w[(i * 2 + j) * 4 + o], acc);
    CHECK(y[o] == acc + b[o]);
  }
  CHECK(compute(linear, DType::bf16)(in).dtype() == DType::bf16);
  CHECK(compute(linear, DType::f32)(cast(in, DType::bf16)).dtype() == DType::f32);
  CHECK_FALSE(tree_signature(linear) == tree_signature(Linear{linear.weight, linear.bias, {"a", "b"}}));
}

TEST_CASE("Embedding: rows of the table, and the tied head's f32 logits") {
  DefaultInterpreter use;
  const Embedding e = compute(Embedding{f32({{"vocab", 3}, {"embed", 2}}, {1, 2, 3, 4, 5, 6})}, DType::bf16);
  const Array rows = e(i32({{"pos", 2}}, {2, 0}));
  CHECK(rows.dtype() == DType::bf16);
  CHECK(values<float>(cast(rows, DType::f32)) == std::vector<float>{5, 6, 1, 2});
  const Array logits = e.attend(f32({{"embed", 2}}, {1, 10}));
  CHECK(logits.dtype() == DType::f32);
  CHECK(values<float>(logits) == std::vector<float>{21, 43, 65});
}

TEST_CASE("Rope turns the halves of head_dim by position * frequency") {
  DefaultInterpreter use;
  const auto freq = rope_frequencies(6, 10000);
  REQUIRE(freq.size() == 3);
  CHECK(freq[0] == 1.0f);
  for (size_t i = 0; i < 3; ++i)
    CHECK(freq[i] == static_cast<float>(numerics::pow_f64(10000, -2.0 * static_cast<double>(i) / 6.0)));
  CHECK(freq[1] == doctest::Approx(std::pow(10000.0, -1.0 / 3)).epsilon(1e-7));
  const auto x = numbers(2 * 2 * 6, 0.2);
  const Rope rope = Rope::at(i32({{"pos", 2}}, {0, 70000}), freq);
  const Array y = rope(f32({{"pos", 2}, {"heads", 2}, {"head_dim", 6}}, x));
  CHECK(y.shape().str() == "f32[pos:2, heads:2, head_dim:6]");
  const auto out = values<float>(y);
  const float positions[] = {0.0f, 70000.0f};
  for (size_t p = 0; p < 2; ++p)
    for (size_t h = 0; h < 2; ++h)
      for (size_t i = 0; i < 3; ++i) {
        const float angle = positions[p] * freq[i];
        const float c = numerics::cos_f32(angle), s = numerics::sin_f32(angle);
        const size_t at = (p * 2 + h) * 6;
        const float a = x[at + i], b = x[at + 3 + i];
        CHECK(out[at + i] == a * c - b * s);
        CHECK(out[at + 3 + i] == b * c + a * s);
      }
}

TEST_CASE("Llama 3's scaling, as published: long wavelengths / factor, short ones kept, a blend between") {
  const double theta = 500000, factor = 8, low = 1, high = 4, old = 8192;
  const auto plain = rope_frequencies(128, theta),
             scaled = rope_frequencies(128, theta, {factor, low, high, old});
  int kept = 0, stretched = 0, blended = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const double f = std::pow(theta, -2.0 * static_cast<double>(i) / 128), wavelength = 2 * M_PI / f;
    double expected = 0;
    if (wavelength < old / high) {
      expected = f, ++kept;
      CHECK(scaled[i] == plain[i]);
    } else if (wavelength > old / low) {
      expected = f / factor, ++stretched;
    } else {
      const double smooth = (old / wavelength - low) / (high - low);
      expected = (1 - smooth) * f / factor + smooth * f, ++blended;
    }
    CHECK(scaled[i] == doctest::Approx(expected).epsilon(1e-7));
  }
  CHECK(kept > 0);
  CHECK(stretched > 0);
  CHECK(blended > 0);
  CHECK(rope_frequencies(128, theta, {1, low, high, old}) == plain);
}

TEST_CASE("initial values: mean, spread and bounds; a function of key and path alone") {
  DefaultInterpreter use;
  const Array key = make_key(7);
  const std::vector<Axis> axes{{"layers", 4}, {"embed", 2500}};
  const Array a = trunc_normal(key, "model/x/weight", axes, 0.02);
  double mean = 0, square = 0, largest = 0;
  for (const float v : values<float>(a)) {
    mean += static_cast<double>(v) / 1e4;
    square += static_cast<double>(v) * static_cast<double>(v) / 1e4;
    largest = std::max(largest, std::abs(static_cast<double>(v)));
  }
  CHECK(std::abs(mean) < 5 * 0.02 / 100);  // five standard errors
  CHECK(std::sqrt(square) == doctest::Approx(0.98658 * 0.02).epsilon(0.03));
  CHECK(largest <= static_cast<double>(3.0f * 0.02f));
  CHECK(largest > 0.05);
  CHECK(same_bits(a, trunc_normal(key, "model/x/weight", axes, 0.02)));
  CHECK_FALSE(same_bits(a, trunc_normal(key, "model/y/weight", axes, 0.02)));
  CHECK_FALSE(same_bits(a, trunc_normal(make_key(8), "model/x/weight", axes, 0.02)));
  CHECK(same_bits(key_of_path(key, "a/b"), fold_in(fold_in(key, "a"), "b")));
  CHECK_FALSE(same_bits(key_of_path(key, "a/b"), key_of_path(key, "b/a")));
  // Layers are outermost of one draw: a deeper model has the same first layers.
  const auto shallow =
      values<float>(trunc_normal(key, "model/x/weight", {{"layers", 2}, {"embed", 2500}}, 0.02));
  const auto deep = values<float>(a);
  CHECK(std::equal(shallow.begin(), shallow.end(), deep.begin()));
}

TEST_CASE("compute tags f32 leaves only, and keeps the values") {
  struct Mixed {
    Array weight, counts;
    OSTRO_FIELDS(weight, counts)
  };
  const Mixed m = compute(Mixed{f32({}, {1}), i32({}, {2})}, DType::bf16);
  CHECK(m.weight.use_dtype() == DType::bf16);
  CHECK_FALSE(m.counts.use_dtype().has_value());
  CHECK(m.weight.dtype() == DType::f32);
}

}  // namespace
}  // namespace ostro::nn
