// Dots whose second operand is chosen row by row: choice, order of the rows, leaves, experts without rows.
#include <doctest/doctest.h>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

const float kLarge = 0x1p25f;  // kLarge + 1 == kLarge

Buffer chosen_dot(const Buffer& x, const Buffer& w, const Buffer& expert, int64_t first = 0,
                  numerics::LeafTable leaves = {}) {
  return eval(OpKind::expert_dot, {x, w, expert, origin(first)},
              {{"axis", std::string("experts")}, {"over", Strings{"k"}}}, std::move(leaves));
}

Buffer outer(const Buffer& a, const Buffer& b, const Buffer& expert, int64_t experts, int64_t first = 0,
             numerics::LeafTable leaves = {}) {
  return eval(OpKind::expert_outer, {a, b, expert, origin(first)},
              {{"axis", std::string("experts")}, {"size", experts}}, std::move(leaves));
}

TEST_CASE("expert_dot: every row has the weights it chose, outside the table +0") {
  const Buffer x = f32({{"t", 2}, {"k", 2}}, {1, 10, 2, 20});
  const Buffer w = f32({{"experts", 3}, {"k", 2}, {"n", 2}}, {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4});
  const Buffer expert = i32({{"t", 2}, {"slot", 2}}, {2, 0, 1, 3});
  // Token 0: experts 2 and 0; token 1: expert 1 and none.
  CHECK(same<float>(chosen_dot(x, w, expert), {-31, -42, 31, 42, 150, 172, 0, 0}));
  // From expert 1 on: 2 is the second part of w here.
  CHECK(same<float>(chosen_dot(x, w, expert, 1), {75, 86, 0, 0, 2 + 60, 4 + 80, -62, -84}));
  const Buffer negative = i32({{"t", 2}, {"slot", 2}}, {-1, -5, 7, 3});
  CHECK(same<float>(chosen_dot(x, w, negative), {0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_CASE("expert_dot: leaves cut the contraction, bf16 sums even and odd products apart") {
  std::vector<float> x(16, 0.0f), ones(32, 1.0f);
  x[0] = kLarge, x[8] = x[9] = x[10] = x[11] = 1;
  const Buffer row = f32({{"mlp", 16}}, x), w = f32({{"experts", 2}, {"mlp", 16}}, ones);
  const ir::Attrs attrs{{"axis", std::string("experts")}, {"over", Strings{"mlp"}}};
  const std::vector<Buffer> in{row, w, i32({{"slot", 1}}, {1}), origin(0)};
  CHECK(eval(OpKind::expert_dot, in, attrs).as<float>()[0] == kLarge);
  CHECK(eval(OpKind::expert_dot, in, attrs, {{{"mlp", 2}}}).as<float>()[0] == kLarge + 4);
  std::vector<float> odd(32, 0.0f);
  odd[0] = kLarge, odd[1] = odd[3] = odd[5] = odd[7] = 1;
  const std::vector<Buffer> narrow{bf16({{"k", 32}}, odd), bf16({{"experts", 1}, {"k", 32}}, ones),
                                   i32({{"slot", 1}}, {0}), origin(0)};
  CHECK(eval(OpKind::expert_dot, narrow, {{"axis", std::string("experts")}, {"over", Strings{"k"}}})
            .as<float>()[0] == kLarge + 4);
}

TEST_CASE("products of experts by the rule of tensor cores") {
  const std::string rule = "tc16";
  const Buffer x = bf16({{"k", 3}}, {1, 0x1p-26f, -1}),
               w = bf16({{"experts", 2}, {"k", 3}}, {0, 0, 0, 1, 1, 1});
  const auto y = [&](ir::Attrs attrs) {
    return eval(OpKind::expert_dot, {x, w, i32({{"slot", 2}}, {1, 2}), origin(0)}, attrs);
  };
  const ir::Attrs dot{{"axis", std::string("experts")}, {"over", Strings{"k"}}};
  CHECK(same<float>(y(dot), {0x1p-26f, 0}));
  ir::Attrs ruled = dot;
  ruled.set("rule", rule);
  CHECK(same<float>(y(ruled), {0, 0}));
  // Groups count the rows of the expert alone: 16 of them are summed at once, whatever lies between.
  std::vector<float> rows(32, 0x1p-25f), ones(32, 1.0f);
  std::vector<int32_t> chosen(32);
  for (size_t i = 0; i < 32; ++i) chosen[i] = static_cast<int32_t>(i % 2);
  rows[0] = 1, rows[1] = 2;
  const std::vector<Buffer> in{bf16({{"t", 32}, {"m", 1}}, rows), bf16({{"t", 32}, {"n", 1}}, ones),
                               i32({{"t", 32}}, chosen), origin(0)};
  const ir::Attrs sum{{"axis", std::string("experts")}, {"size", int64_t{2}}, {"rule", rule}};
  CHECK(same<float>(eval(OpKind::expert_outer, in, sum), {1 + 0x1p-23f * 3, 2}));
}

TEST_CASE("expert_outer: rows in ascending order, experts without rows +0, rows of no expert left out") {
  const Buffer a = f32({{"t", 4}, {"m", 1}}, {kLarge, 1, -kLarge, 1});
  const Buffer b = f32({{"t", 4}, {"n", 2}}, {1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(same<float>(outer(a, b, i32({{"t", 4}}, {1, 1, 1, 1}), 3), {0, 0, 1, 2, 0, 0}));
  CHECK(same<float>(outer(a, b, i32({{"t", 4}}, {1, 0, 1, 9}), 2), {1, 2, 0, 0}));
  CHECK(same<float>(outer(a, b, i32({{"t", 4}}, {3, 3, 3, 4}), 2, 3), {0, 0, 1, 2}));
  // A token's row of a for both of its slots.
  const Buffer each = f32({{"t", 2}, {"m", 1}}, {3, 5});
  const Buffer slots = f32({{"t", 2}, {"slot", 2}}, {1, 10, 100, 1000});
  CHECK(same<float>(outer(each, slots, i32({{"t", 2}, {"slot", 2}}, {0, 1, 1, 0}), 2), {3 + 5000, 30 + 500}));
}

TEST_CASE("expert_outer: groups of 32 count an expert's rows alone, and start anew in each leaf") {
  // Rows 0, 2, 4, ... belong to expert 0, so its 32 rows are one group: even and odd ones apart.
  std::vector<float> a(64, 0.0f), ones(64, 1.0f);
  std::vector<int32_t> expert(64);
  for (size_t t = 0; t < 64; ++t) expert[t] = static_cast<int32_t>(t % 2);
  a[0] = kLarge, a[2] = a[6] = a[10] = a[14] = 1;
  const Buffer left = bf16({{"t", 64}}, a), right = bf16({{"t", 64}}, ones),
               chosen = i32({{"t", 64}}, expert);
  CHECK(same<float>(outer(left, right, chosen, 2), {kLarge + 4, 0}));
  a[6] = a[10] = a[14] = 0, a[4] = 1;  // the even chain: lost
  CHECK(same<float>(outer(bf16({{"t", 64}}, a), right, chosen, 2), {kLarge, 0}));
  // Two leaves of pos, the rows of an expert in each: large + (2 + 2); together, each 2 is lost.
  std::vector<float> c(256, 0.0f), many(256, 1.0f);
  c[0] = kLarge, c[130] = c[140] = 2, c[131] = 7;
  std::vector<int32_t> of(256, 0);
  of[131] = 1;
  const Buffer rows = f32({{"pos", 256}}, c), other = f32({{"pos", 256}}, many), to = i32({{"pos", 256}}, of);
  CHECK(same<float>(outer(rows, other, to, 2), {kLarge, 7}));
  CHECK(same<float>(outer(rows, other, to, 2, 0, {{{"pos", 2}}}), {kLarge + 4, 7}));
}

TEST_CASE("expert ops name what does not fit") {
  const Buffer x = f32({{"t", 1}, {"k", 1}}, {1}), w = f32({{"experts", 1}, {"k", 1}, {"n", 1}}, {1});
  const Buffer expert = i32({{"t", 1}}, {0});
  const auto message = [&](std::vector<Buffer> in, Strings over) {
    return try_eval(OpKind::expert_dot, in, {{"axis", std::string("experts")}, {"over", std::move(over)}})
        .error()
        .message();
  };
  CHECK(message({x, w, f32({{"t", 1}}, {0}), origin(0)}, {"k"}).find("expert is f32, not i32") !=
        std::string::npos);
  CHECK(message({x, w, expert, origin(0)}, {"experts"}).find("cannot contract over \"experts\"") !=
        std::string::npos);
  CHECK(message({f32({{"u", 1}, {"k", 1}}, {1}), w, expert, origin(0)}, {"k"}).find("axis \"u\"") !=
        std::string::npos);
  CHECK(message({bf16({{"t", 1}, {"k", 1}}, {1}), w, expert, origin(0)}, {"k"}).find("bf16 and f32") !=
        std::string::npos);
  CHECK(message({x, w, i32({{"t", 1}, {"n", 2}}, {0, 0}), origin(0)}, {"k"}).find("rename it") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::interp
