// The tanh of attention's kernels against the scalar one: every bit, whatever the number of values.
#include "ostro/machine/vector/tanh.inc.h"

#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <random>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/numerics/functions.h"

namespace ostro::machine {
namespace {

void check(const std::vector<float>& x, float scale, float cap) {
  std::vector<float> apart(x.size()), inner = x, capped = x;
  const auto n = static_cast<int64_t>(x.size());
  tanh_of_scores(x.data(), apart.data(), n, scale, cap);
  tanh_of_scores(inner.data(), inner.data(), n, scale, cap);
  cap_scores(capped.data(), n, scale, cap);
  for (size_t i = 0; i < x.size(); ++i) {
    const float tanh = numerics::tanh_f32((x[i] * scale) / cap);
    CAPTURE(x[i]);
    REQUIRE(std::bit_cast<uint32_t>(apart[i]) == std::bit_cast<uint32_t>(tanh));
    REQUIRE(std::bit_cast<uint32_t>(inner[i]) == std::bit_cast<uint32_t>(tanh));
    REQUIRE(std::bit_cast<uint32_t>(capped[i]) == std::bit_cast<uint32_t>(cap * tanh));
  }
}

TEST_CASE("tanh of scores is tanh_f32") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0f,  -0.0f, kInf,  -kInf,  std::nanf(""), 1e-45f, -1e-45f, 1e-38f,
                                      22.0f, 21.9f, 22.1f, -22.5f, 3e38f,         1e-7f,  0.5f,    -0.3466f};
  check(special, 1.0f, 1.0f);
  std::mt19937 random(7);
  for (int64_t n = 0; n < 70; ++n) {
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    check(x, 0.125f, 30.0f);
  }
  std::vector<float> near(sized<size_t>(100'000, 3'000'000, 100'000'000));
  for (float& v : near) v = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-26f;
  check(near, 0.0883883461f, 30.0f);
}

}  // namespace
}  // namespace ostro::machine
