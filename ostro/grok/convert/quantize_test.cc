#include "ostro/grok/convert/quantize.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

namespace ostro::grok {
namespace {

using numerics::Bf16;

constexpr int64_t kColumns = 37, kRows = 50;

struct Quantized {
  std::vector<int8_t> weights = std::vector<int8_t>(kRows * kColumns);
  std::vector<Bf16> scales = std::vector<Bf16>(kColumns);

  float value(int64_t i, bool rounded) const {
    const float x = static_cast<float>(weights[static_cast<size_t>(i)]) *
                    to_f32(scales[static_cast<size_t>(i % kColumns)]);
    return rounded ? numerics::round_to_bf16(x) : x;
  }
};

TEST_CASE("products of int8 and a scale are found again, exact or rounded to bf16") {
  std::mt19937_64 rng(3);
  for (const bool rounded : {false, true})
    for (int most : {127, 126, 90, 3, 1}) {
      Quantized given, found;
      for (int64_t c = 0; c < kColumns; ++c)
        given.scales[static_cast<size_t>(c)] = numerics::to_bf16(
            std::ldexp(1 + static_cast<float>(rng() % 1000) / 1000, -static_cast<int>(rng() % 12)));
      for (int8_t& w : given.weights)
        w = static_cast<int8_t>(static_cast<int>(rng() % static_cast<uint64_t>(2 * most + 1)) - most);
      std::vector<float> values;
      for (int64_t i = 0; i < kRows * kColumns; ++i) values.push_back(given.value(i, rounded));
      REQUIRE(quantize(values, kColumns, found.weights, found.scales).ok());
      int wrong = 0;
      for (int64_t i = 0; i < kRows * kColumns; ++i)
        if (found.value(i, rounded) != values[static_cast<size_t>(i)]) ++wrong;
      CHECK(wrong == 0);
    }
}

TEST_CASE("other values differ by at most half a scale, and zeros stay zeros") {
  std::mt19937_64 rng(4);
  std::normal_distribution<float> normal;
  std::vector<float> values(kRows * kColumns);
  for (float& x : values) x = normal(rng);
  for (int64_t r = 0; r < kRows; ++r) values[static_cast<size_t>(r * kColumns + 5)] = 0;
  Quantized found;
  REQUIRE(quantize(values, kColumns, found.weights, found.scales).ok());
  int far = 0, exact = 0;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    const auto at = static_cast<size_t>(i);
    const float scale = to_f32(found.scales[static_cast<size_t>(i % kColumns)]);
    const float off = std::abs(found.value(i, false) - values[at]);
    if (off > scale * 0.5f * (1 + 1e-6f)) ++far;
    if (off == 0 && values[at] != 0) ++exact;
  }
  CHECK(far == 0);
  CHECK(exact < kColumns);
  CHECK(to_f32(found.scales[5]) == 0);
  values[7] = INFINITY;
  const Status refused = quantize(values, kColumns, found.weights, found.scales);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("column 7 ") != std::string::npos);
}

}  // namespace
}  // namespace ostro::grok
