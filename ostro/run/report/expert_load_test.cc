// Figures of loads by hand.
#include "ostro/run/report/expert_load.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ostro::run {
namespace {

runtime::Buffer load(const std::vector<float>& shares) {
  const auto experts = int64_t{4};
  return runtime::Buffer::copy_of(
      {ir::DType::f32, {{"layers", static_cast<int64_t>(shares.size()) / experts}, {"experts", experts}}},
      shares.data());
}

TEST_CASE("loads: extremes, entropy, means over layers; a layer that has collapsed") {
  const std::vector<runtime::Buffer> even = {load({0.25f, 0.25f, 0.25f, 0.25f})},
                                     two = {load({0.25f, 0.25f, 0.25f, 0.25f, 0.5f, 0.5f, 0, 0})},
                                     one = {even[0], load({0, 0, 1, 0})};
  Metrics m;
  add_load_metrics({}, m);
  CHECK(m.empty());
  add_load_metrics(even, m);
  CHECK(m.at("moe/max_load") == 1);
  CHECK(m.at("moe/entropy") == doctest::Approx(1));
  CHECK(m.at("moe/dropped_tokens") == 0);
  add_load_metrics(two, m);
  CHECK(m.at("moe/max_load") == 2);
  CHECK(m.at("moe/min_load") == 0);
  CHECK(m.at("moe/entropy") == doctest::Approx(0.75));
  CHECK(m.at("moe/load/0") == doctest::Approx(0.375));
  CHECK(m.at("moe/load/3") == doctest::Approx(0.125));
  CHECK(collapsed_layer(two, 0.5).empty());
  CHECK(collapsed_layer(one, 0.5) ==
        "layer 0 of block 1: expert 2 of 4 gets 100 % of the rows, the entropy of the loads is 0.00 of 1");
}

}  // namespace
}  // namespace ostro::run
