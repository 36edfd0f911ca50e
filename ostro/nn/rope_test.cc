// Kinds of rotary positions beside Llama's: stretched, of a part of a head, of neighbours.
#include "ostro/nn/rope.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/numerics/functions.h"
#include "ostro/trace/arrays_for_test.h"

namespace ostro::nn {
namespace {

using namespace test;

void check_near(const std::vector<float>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i)
    CHECK(static_cast<double>(a[i]) == doctest::Approx(b[i]).epsilon(1e-6));
}

TEST_CASE("YaRN's frequencies are those of transformers") {
  check_near(yarn_rope_frequencies(32, 10000, {4, 2048, 32, 1, true}),
             {1.0, 0.5623413324356079, 0.3162277638912201, 0.17782793939113617, 0.10000000149011612,
              0.05020904168486595, 0.02484646998345852, 0.012066896073520184, 0.0057142856530845165,
              0.0026108704041689634, 0.0011293849674984813, 0.00044456985779106617, 0.0002500000118743628,
              0.00014058532542549074, 7.905694656074047e-05, 4.4456985051510856e-05});
  check_near(yarn_rope_frequencies(32, 10000, {4, 2048, 16, 2, false}),
             {1.0, 0.5623413324356079, 0.3162277638912201, 0.17782793939113617, 0.10000000149011612,
              0.05623412877321243, 0.02660749852657318, 0.011270422488451004, 0.004261618945747614,
              0.0014058533124625683, 0.0007905694656074047, 0.00044456985779106617, 0.0002500000118743628,
              0.00014058532542549074, 7.905694656074047e-05, 4.4456985051510856e-05});
}

TEST_CASE("linear scaling divides every frequency") {
  const auto plain = rope_frequencies(8, 10000), scaled = linear_rope_frequencies(8, 10000, 4);
  for (size_t i = 0; i < plain.size(); ++i) CHECK(scaled[i] == plain[i] / 4);
}

TEST_CASE("neighbours turn together, a part of the head stays, cos and sin are scaled") {
  DefaultInterpreter use;
  const std::vector<float> freq = {1.0f, 0.25f}, x = {0.5f, -1.0f, 2.0f, 3.0f, 7.0f, -9.0f};
  Rope rope = Rope::at(i32({{"pos", 1}}, {5}), freq, 1.5);
  rope.interleaved = true;
  const auto y = values<float>(rope(f32({{"pos", 1}, {"head_dim", 6}}, x)));
  for (size_t i = 0; i < 2; ++i) {
    const float angle = 5.0f * freq[i];
    const float c = numerics::cos_f32(angle) * 1.5f, s = numerics::sin_f32(angle) * 1.5f;
    const float a = x[2 * i], b = x[2 * i + 1];
    CHECK(y[2 * i] == a * c - b * s);
    CHECK(y[2 * i + 1] == b * c + a * s);
  }
  CHECK(y[4] == 7.0f);
  CHECK(y[5] == -9.0f);
}

}  // namespace
}  // namespace ostro::nn
