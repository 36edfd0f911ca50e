#include "ostro/grok/convert/model.h"

#include <doctest/doctest.h>

namespace ostro::grok {
namespace {

TEST_CASE("the shape of an imported model is that of the release again") {
  const auto options = decoder_options(GrokShape(), {0, 64});
  REQUIRE(options.ok());
  const auto shape = grok_shape(*options, 131072, Dtype::kInt8);
  REQUIRE(shape.ok());
  CHECK(*shape == GrokShape());
  CHECK(grok_shape(*options, 131072, Dtype::kF32)->matrices == Dtype::kF32);
}

TEST_CASE("rows are split into as many groups as divide them") {
  models::DecoderOptions o("grok");
  o.intermediate_dim = 684;
  check_ok(o.resolve());
  CHECK(grok_shape(o, 300, Dtype::kInt8)->row_groups == 4);
}

TEST_CASE("what the layout cannot hold is refused by its key") {
  const auto refused = [](const char* family, auto change) {
    models::DecoderOptions o(family);
    change(o);
    check_ok(o.resolve());
    const auto shape = grok_shape(o, 300, Dtype::kInt8);
    REQUIRE_FALSE(shape.ok());
    CHECK(shape.error().code() == ErrorCode::kUnsupported);
    return shape.error().message();
  };
  CHECK(refused("llama", [](auto&) {}).starts_with("model.type is llama;"));
  CHECK(
      refused("grok", [](auto& o) { o.norm_topk_prob = true; }).starts_with("model.norm_topk_prob is true;"));
  CHECK(refused("grok", [](auto& o) {
          o.rope = models::RopeDefaultOptions{.theta = 5e5};
        }).starts_with("model.rope.theta is 500000;"));
  CHECK(refused("grok", [](auto& o) {
          o.track_expert_load = true;
          o.router_bias_update_rate = 0.001;
        }).find("router_aux_loss_coef") != std::string::npos);
}

}  // namespace
}  // namespace ostro::grok
