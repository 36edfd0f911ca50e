#include <doctest/doctest.h>

#include <limits>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

const Buffer kX = f32({{"a", 2}, {"b", 3}}, {0, 1, 2, 3, 4, 5});
const std::string kA = "a", kB = "b";

TEST_CASE("elements move, bits stay") {
  CHECK(same<float>(eval(OpKind::transpose, {kX}, {{"axes", Strings{"b", "a"}}}), {0, 3, 1, 4, 2, 5}));
  CHECK(same<float>(eval(OpKind::broadcast, {f32({{"b", 2}}, {7, -0.0f})},
                         {{"axes", Strings{"b", "c"}}, {"sizes", Ints{2, 2}}}),
                    {7, 7, -0.0f, -0.0f}));
  CHECK(eval(OpKind::rename, {kX}, {{"from", Strings{"a"}}, {"to", Strings{"c"}}}).shape().str() ==
        "f32[c:2, b:3]");
  CHECK(eval(OpKind::merge_axes, {kX}, {{"axes", Strings{"a", "b"}}, {"axis", std::string("n")}})
            .shape()
            .str() == "f32[n:6]");
  CHECK(eval(OpKind::split_axis, {kX}, {{"axis", kB}, {"axes", Strings{"c", "d"}}, {"sizes", Ints{3, 1}}})
            .shape()
            .str() == "f32[a:2, c:3, d:1]");
  CHECK(same<float>(eval(OpKind::slice, {kX},
                         {{"axis", kB}, {"start", int64_t{0}}, {"size", int64_t{2}}, {"stride", int64_t{2}}}),
                    {0, 2, 3, 5}));
  CHECK(same<float>(eval(OpKind::pad, {kX}, {{"axis", kB}, {"low", int64_t{1}}, {"high", int64_t{0}}}),
                    {0, 0, 1, 2, 0, 3, 4, 5}));
  CHECK(same<float>(eval(OpKind::concat, {kX, f32({{"a", 2}, {"b", 1}}, {8, 9})}, {{"axis", kB}}),
                    {0, 1, 2, 8, 3, 4, 5, 9}));
  CHECK(same<float>(eval(OpKind::stack, {kX, kX}, {{"axis", std::string("c")}, {"position", int64_t{1}}}),
                    {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  CHECK(same<float>(eval(OpKind::reverse, {kX}, {{"axis", kB}}), {2, 1, 0, 5, 4, 3}));
  const auto parts = eval_n(OpKind::split, {kX}, {{"axis", kB}, {"sizes", Ints{1, 2}}});
  CHECK(same<float>(parts[0], {0, 3}));
  CHECK(same<float>(parts[1], {1, 2, 4, 5}));
  CHECK(same<float>(eval_n(OpKind::unstack, {kX}, {{"axis", kA}})[1], {3, 4, 5}));
}

TEST_CASE("dynamic slices are clamped") {
  auto slice = [](int32_t start) {
    return eval(OpKind::dynamic_slice, {kX, i32({}, {start})}, {{"axis", kB}, {"size", int64_t{2}}});
  };
  CHECK(same<float>(slice(1), {1, 2, 4, 5}));
  CHECK(same<float>(slice(9), {1, 2, 4, 5}));
  CHECK(same<float>(slice(-9), {0, 1, 3, 4}));
  const Buffer update = f32({{"a", 2}, {"b", 1}}, {8, 9});
  CHECK(same<float>(eval(OpKind::dynamic_update_slice, {kX, update, i32({}, {1})}, {{"axis", kB}}),
                    {0, 8, 2, 3, 9, 5}));
  CHECK(same<float>(eval(OpKind::dynamic_update_slice, {kX, update, i32({{"a", 2}}, {0, 7})}, {{"axis", kB}}),
                    {8, 1, 2, 3, 4, 9}));
}

TEST_CASE("gather reads +0 outside; scatter_add adds in ascending order and by pos leaves") {
  const Buffer table = f32({{"v", 3}, {"d", 2}}, {-0.0f, 1, 2, 3, 4, 5});
  CHECK(same<float>(
      eval(OpKind::gather, {table, i32({{"n", 3}}, {0, 2, 5}), origin(0)}, {{"axis", std::string("v")}}),
      {-0.0f, 1, 4, 5, 0, 0}));
  CHECK(same<float>(
      eval(OpKind::gather, {table, i32({{"n", 2}}, {3, 2}), origin(2)}, {{"axis", std::string("v")}}),
      {2, 3, -0.0f, 1}));
  CHECK(same<float>(eval(OpKind::gather, {kX, i32({{"a", 2}}, {2, 0}), origin(0)}, {{"axis", kB}}), {2, 3}));
  const float big = 0x1p25f;
  auto scatter = [&](numerics::LeafTable leaves) {
    std::vector<float> update(256, 0.0f);
    std::vector<int32_t> index(256, 1);
    update[0] = big, update[1] = 1, update[128] = 1, update[129] = 1, update[130] = 1, index[3] = 7;
    return eval(OpKind::scatter_add, {f32({{"pos", 256}}, update), i32({{"pos", 256}}, index), origin(0)},
                {{"axis", std::string("v")}, {"size", int64_t{3}}, {"position", int64_t{0}}},
                std::move(leaves));
  };
  CHECK(same<float>(scatter({}), {0, big, 0}));
  CHECK(same<float>(scatter({{{"pos", 2}}}), {0, big + 4, 0}));
}

TEST_CASE("sort and top_k are stable, NaN is largest") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Buffer x = f32({{"n", 4}}, {2, -0.0f, 0, 2});
  auto up = eval_n(OpKind::sort, {x}, {{"axis", std::string("n")}, {"descending", int64_t{0}}});
  CHECK(same<float>(up[0], {-0.0f, 0, 2, 2}));
  CHECK(same<int32_t>(up[1], {1, 2, 0, 3}));
  auto down = eval_n(OpKind::top_k, {x}, {{"axis", std::string("n")}, {"k", int64_t{3}}});
  CHECK(same<float>(down[0], {2, 2, -0.0f}));
  CHECK(same<int32_t>(down[1], {0, 3, 1}));
  CHECK(eval(OpKind::argmax, {f32({{"n", 4}}, {1, nan, 3, nan})}, {{"axis", std::string("n")}})
            .item<int32_t>() == 1);
  CHECK(eval(OpKind::argmax, {x}, {{"axis", std::string("n")}}).item<int32_t>() == 0);
}

}  // namespace
}  // namespace ostro::interp
