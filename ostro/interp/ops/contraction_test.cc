// Sums, dots and what leaves do to them. Big is chosen so that big + 1 == big and big + 4 is exact.
#include <doctest/doctest.h>

#include <limits>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

const float kBig = 0x1p25f;

Buffer sum(const Buffer& x, Strings axes, const char* order, numerics::LeafTable leaves = {},
           const char* acc = "f32") {
  return eval(OpKind::sum, {x},
              {{"axes", std::move(axes)}, {"order", std::string(order)}, {"acc", std::string(acc)}},
              std::move(leaves));
}

TEST_CASE("striped and serial sums differ as the text says; leaves cut both") {
  std::vector<float> x(256, 0.0f);
  x[0] = kBig;
  for (int i : {64, 128, 192, 1}) x[i] = 1;  // lane 0 holds big and three ones, lane 1 a one
  CHECK(sum(f32({{"mlp", 256}}, x), {"mlp"}, "striped").item<float>() == kBig);
  x[1] = x[17] = x[33] = x[49] = 1;  // lane 1 of the four groups of 16: 4 in all before it meets big
  CHECK(sum(f32({{"mlp", 256}}, x), {"mlp"}, "serial").item<float>() == kBig);
  CHECK(sum(f32({{"mlp", 256}}, x), {"mlp"}, "striped").item<float>() == kBig + 4);
  std::vector<float> y(32, 0.0f);
  y[0] = kBig, y[16] = y[17] = y[24] = y[25] = 1;
  CHECK(sum(f32({{"mlp", 32}}, y), {"mlp"}, "serial", {{{"mlp", 2}}}).item<float>() == kBig + 4);
  CHECK(sum(f32({{"mlp", 32}}, y), {"mlp"}, "serial", {{{"mlp", 1}}}).item<float>() == kBig);
  CHECK(sum(f32({{"mlp", 32}}, y), {"mlp"}, "serial", {}, "f64").item<double>() == kBig + 4.0);
}

TEST_CASE("several cut axes nest in table order, and (batch, pos) is flattened within a pos leaf") {
  // Partials, outer axis u, inner axis t: (u0 t0, u0 t1, u1 t0, u1 t1) joined as (a + b) + (c + d).
  const Buffer x = f32({{"t", 2}, {"u", 2}}, {kBig, 2, -kBig, 2});
  CHECK(sum(x, {"t", "u"}, "serial", {{{"u", 2}, {"t", 2}}}).item<float>() == 4);
  CHECK(sum(x, {"t", "u"}, "serial", {{{"t", 2}, {"u", 2}}}).item<float>() == (kBig + 2) + (-kBig + 2));
  std::vector<float> y(2 * 256, 0.0f);
  y[0] = kBig, y[256] = -kBig, y[200] = 1, y[256 + 200] = 1;
  CHECK(sum(f32({{"batch", 2}, {"pos", 256}}, y), {"batch", "pos"}, "serial").item<float>() == 1);
  CHECK(sum(f32({{"batch", 2}, {"pos", 256}}, y), {"batch", "pos"}, "serial", {{{"pos", 2}}}).item<float>() ==
        2);
  // Three leaves: (0 + 1) + 2; empty leaves are +0.
  CHECK(sum(f32({{"e", 3}}, {-0.0f, -0.0f, -0.0f}), {"e"}, "serial", {{{"e", 8}}}).item<float>() == 0);
}

TEST_CASE("other reductions") {
  const Buffer x = f32({{"a", 2}, {"b", 3}}, {1, -0.0f, 0, -3, -1, -2});
  CHECK(same<float>(eval(OpKind::reduce_max, {x}, {{"axes", Strings{"b"}}}), {1, -1}));
  CHECK(same<float>(eval(OpKind::reduce_min, {x}, {{"axes", Strings{"b"}}}), {-0.0f, -3}));
  CHECK(same<int32_t>(eval(OpKind::sum, {i32({{"n", 2}}, {2147483647, 1})}, {{"axes", Strings{"n"}}}),
                      {std::numeric_limits<int32_t>::min()}));
  const Buffer parts = f32({{"p", 5}}, {kBig, 1, 1, 1, -kBig});
  CHECK(eval(OpKind::tree_sum, {parts}, {{"axes", Strings{"p"}}}).item<float>() == 0);
  CHECK(eval(OpKind::tree_sum, {f32({{"p", 3}}, {1, kBig, -kBig})}, {{"axes", Strings{"p"}}}).item<float>() ==
        0);
  CHECK(eval(OpKind::tree_sum, {f32({{"p", 4}}, {kBig, -kBig, 1, 1})}, {{"axes", Strings{"p"}}})
            .item<float>() == 2);
}

TEST_CASE("dot chains with fma, batches over shared names, cuts at leaves") {
  const Buffer a = f32({{"m", 2}, {"k", 2}}, {1, 2, 3, 4}), b = f32({{"k", 2}, {"n", 2}}, {5, 6, 7, 8});
  CHECK(same<float>(eval(OpKind::dot, {a, b}, {{"over", Strings{"k"}}}), {19, 22, 43, 50}));
  CHECK(same<float>(eval(OpKind::dot, {a, a}, {{"over", Strings{"k"}}}), {5, 25}));
  const float e = 0x1p-13f;  // (1 + e)^2 - 1 keeps e * e only if the product is not rounded
  CHECK(
      eval(OpKind::dot, {f32({{"k", 2}}, {-1, 1 + e}), f32({{"k", 2}}, {1, 1 + e})}, {{"over", Strings{"k"}}})
          .item<float>() == 2 * e + e * e);
  const Buffer ones = f32({{"h", 4}}, {1, 1, 1, 1}), x = f32({{"h", 4}}, {kBig, 1, 2, 2});
  CHECK(eval(OpKind::dot, {x, ones}, {{"over", Strings{"h"}}}).item<float>() == kBig);
  CHECK(eval(OpKind::dot, {x, ones}, {{"over", Strings{"h"}}}, {{{"h", 2}}}).item<float>() == kBig + 4);
}

TEST_CASE("bf16 dot sums even and odd products apart, in groups of 32") {
  std::vector<float> x(34, 0.0f);
  const std::vector<float> ones(34, 1.0f);
  x[0] = kBig, x[1] = 2, x[3] = 2, x[2] = 1, x[32] = 1, x[33] = 2;
  // e = big (+ 1 lost), o = 4; then group two: 1 + 2 = 3, and big + 4 + 3 ties to even.
  const Buffer a = bf16({{"k", 34}}, x), b = bf16({{"k", 34}}, ones);
  CHECK(eval(OpKind::dot, {a, b}, {{"over", Strings{"k"}}}).item<float>() == (kBig + 4) + 3);
  CHECK(eval(OpKind::dot, {a, b}, {{"over", Strings{"k"}}, {"dtype", std::string("bf16")}}).bytes().size() ==
        2);
}

TEST_CASE("bf16 dot by the rule of tensor cores: groups of 16, cut 25 bits below the largest exponent") {
  const ir::Attrs attrs{{"over", Strings{"k"}}, {"rule", std::string("tc16")}};
  const auto dot_with_ones = [&](std::vector<float> x, numerics::LeafTable leaves = {}) {
    const auto n = static_cast<int64_t>(x.size());
    const std::vector<float> ones(x.size(), 1.0f);
    return eval(OpKind::dot, {bf16({{"k", n}}, x), bf16({{"k", n}}, ones)}, attrs, std::move(leaves))
        .item<float>();
  };
  CHECK(dot_with_ones({1, 0x1p-25f, -1}) == 0x1p-25f);
  CHECK(dot_with_ones({1, 0x1p-26f, -1}) == 0);
  CHECK(dot_with_ones({1, 0x1.8p-25f, -1}) == 0x1p-25f);
  // Cut, not rounded: 1 + 3 * 2^-25.
  CHECK(dot_with_ones({1, 0x1p-24f, 0x1p-25f}) == 1);
  // Inside a group 16 small numbers add up before they meet the bits of f32; in the next one they do not.
  std::vector<float> x(17, 0x1p-25f);
  x[0] = 1;
  CHECK(dot_with_ones(x) == 1 + 0x1p-23f * 3);
  x.assign(32, 0.0f);
  x[0] = 1, x[15] = x[16] = 0x1p-24f;
  CHECK(dot_with_ones(x) == 1);
  x[14] = 0x1p-24f;
  CHECK(dot_with_ones(x) == 1 + 0x1p-23f);
  // Groups begin anew with a leaf; the tree adds in f32.
  x[14] = 0;
  CHECK(dot_with_ones({1, 0x1p-24f, 0x1p-24f, 0}, {{{"k", 2}}}) == 1);
  CHECK(dot_with_ones({1, 0x1p-24f, 0x1p-24f, 0}) == 1 + 0x1p-23f);
  CHECK(dot_with_ones({}) == 0);
  // Denormal results are kept, and a bf16 result has none.
  const Buffer tiny = bf16({{"k", 1}}, {0x1p-70f});
  CHECK(std::bit_cast<uint32_t>(eval(OpKind::dot, {tiny, tiny}, attrs).as<float>()[0]) == 1u << 9);
  ir::Attrs narrow = attrs;
  narrow.set("dtype", std::string("bf16"));
  CHECK(eval(OpKind::dot, {tiny, tiny}, narrow).as<numerics::Bf16>()[0].bits == 0);
  for (const char* rule : {"tc8", ""})
    CHECK(!try_eval(OpKind::dot, {tiny, tiny}, {{"over", Strings{"k"}}, {"rule", std::string(rule)}}).ok());
  CHECK(try_eval(OpKind::dot, {f32({{"k", 1}}, {1}), f32({{"k", 1}}, {1})}, attrs)
            .error()
            .message()
            .find("rule tc16 multiplies bf16, not f32") != std::string::npos);
}

}  // namespace
}  // namespace ostro::interp
