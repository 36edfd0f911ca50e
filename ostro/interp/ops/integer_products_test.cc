// quantize and dot_int8 by hand (docs/spec/numerics.md, N20).
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ostro/interp/engine/eval_for_test.h"
#include "ostro/numerics/threefry.h"

namespace ostro::interp {
namespace {

ir::Attrs blocks_of(Strings over, int64_t block, const char* rounding = nullptr) {
  ir::Attrs attrs{{"over", std::move(over)}, {"block", block}, {"groups", std::string("g")}};
  if (rounding != nullptr) attrs.set("rounding", std::string(rounding));
  return attrs;
}

std::vector<Buffer> nearest(const Buffer& x, Strings over, int64_t block) {
  return eval_n(OpKind::quantize, {x}, blocks_of(std::move(over), block, "nearest"));
}

TEST_CASE("quantize: the scale of a block holds its largest element, ties go to even") {
  // The largest of the first block is 64: scale 1. 127.25 needs 64 / 2: with scale 1 it would be cut off.
  const auto out = nearest(f32({{"k", 6}}, {64, 0.5f, -1.5f, 127.25f, -2, 3}), {"k"}, 3);
  CHECK(same<int8_t>(out[0], {64, 0, -2, 64, -1, 2}));
  CHECK(same<float>(out[1], {1, 2}));
  CHECK(same<int8_t>(nearest(f32({{"k", 2}}, {127, -127}), {"k"}, 2)[0], {127, -127}));
}

TEST_CASE("quantize: zeros, denormals, tiny numbers, NaN and infinity") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto out =
      nearest(f32({{"k", 9}}, {0, -0.0f, 0x1p-127f, 0x1p-126f, -0x1p-120f, 0, 1, infinity, NAN}), {"k"}, 3);
  CHECK(same<int8_t>(out[0], {0, 0, 0, 1, -64, 0, 0, 0, 0}));
  CHECK(out[1].as<float>()[0] == 0);
  CHECK(out[1].as<float>()[1] == 0x1p-126f);
  CHECK(std::isnan(out[1].as<float>()[2]));
}

TEST_CASE("quantize puts the contracted axes last, flattened in the order of over, the last block short") {
  const Buffer x = bf16({{"a", 2}, {"r", 2}, {"b", 2}}, {1, 2, 10, 20, 3, 4, 30, 40});
  const auto out = nearest(x, {"b", "a"}, 3);
  CHECK(out[0].shape() == ir::Shape{ir::DType::i8, {{"r", 2}, {"b", 2}, {"a", 2}}});
  CHECK(out[1].shape() == ir::Shape{ir::DType::f32, {{"r", 2}, {"g", 2}}});
  // Row 0 is 1 3 2 | 4, row 1 10 30 20 | 40.
  CHECK(same<float>(out[1], {0x1p-5f, 0x1p-4f, 0x1p-2f, 0x1p-1f}));
  CHECK(same<int8_t>(out[0], {32, 96, 64, 64, 40, 120, 80, 80}));
}

TEST_CASE("dithered integers are those of the draws, by the element's place in the whole array") {
  const numerics::Key key{7, 9};
  const Buffer key_array = make(ir::DType::u32, {{"word", 2}}, std::vector<uint32_t>{key.word0, key.word1});
  // Rows 3 and 4, columns 1 and 2 of an array with 5 columns. The largest is 64 in each block: scale 1.
  const Buffer x = f32({{"r", 2}, {"k", 2}}, {64, 0.25f, 64, -0.25f});
  ir::Attrs attrs = blocks_of({"k"}, 2, "dithered");
  attrs.set("global_sizes", Ints{9, 5});
  const auto out = eval_n(OpKind::quantize, {x, key_array, origin(3), origin(1)}, attrs);
  for (int64_t r = 0; r < 2; ++r) {
    // The indices 17 and 22 are in the blocks 4 and 5: the upper half of the first word, and the lower one of
    // the second.
    const numerics::Key block = numerics::threefry2x32(key, 0, r == 0 ? 4 : 5);
    const uint32_t h = r == 0 ? block.word0 >> 16 : block.word1 & 0xffff;
    const double u = (2.0 * h + 1) / 131072;
    CHECK(out[0].as<int8_t>()[static_cast<size_t>(2 * r)] == 64);
    CHECK(out[0].as<int8_t>()[static_cast<size_t>(2 * r + 1)] ==
          static_cast<int8_t>(std::floor((r == 0 ? 0.25 : -0.25) + u)));
  }
}

// Threefry of the key 0 and the counter 0 is 6b200159 99ba4efe (Random123). So the first four elements add
// h = 0159, 6b20, 4efe and 99ba of 10000: 0.005, 0.418, 0.309 and 0.600.
TEST_CASE("four neighbours are dithered by the four quarters of a block of threefry, in order") {
  const Buffer key = make(ir::DType::u32, {{"word", 2}}, std::vector<uint32_t>{0, 0});
  ir::Attrs attrs = blocks_of({"k"}, 5, "dithered");
  attrs.set("global_sizes", Ints{5});
  const auto integers = [&](float t) {
    return eval_n(OpKind::quantize, {f32({{"k", 5}}, {t, t, t, t, 64}), key, origin(0)}, attrs)[0];
  };
  CHECK(same<int8_t>(integers(0.375f), {0, 0, 0, 0, 64}));
  CHECK(same<int8_t>(integers(0.5f), {0, 0, 0, 1, 64}));
  CHECK(same<int8_t>(integers(0.625f), {0, 1, 0, 1, 64}));
  CHECK(same<int8_t>(integers(0.75f), {0, 1, 1, 1, 64}));
  CHECK(same<int8_t>(integers(-0.0f), {0, 0, 0, 0, 64}));
  CHECK(same<int8_t>(integers(1 - 0x1p-8f), {1, 1, 1, 1, 64}));
  // The exact place where the second goes up: 1 - u with u = (2 * 0x6b20 + 1) / 2^17.
  CHECK(same<int8_t>(integers(1 - 0xd641p-17f), {0, 1, 0, 1, 64}));
  CHECK(same<int8_t>(integers(1 - 0xd642p-17f), {0, 0, 0, 1, 64}));
}

TEST_CASE("dot_int8 adds exact sums of blocks by fma, the scale of the left operand last") {
  const auto i8 = [](std::vector<ir::Axis> axes, const std::vector<int8_t>& q) {
    return make(ir::DType::i8, std::move(axes), q);
  };
  const Buffer a = i8({{"m", 2}, {"k", 3}}, {1, 2, 3, 4, 5, 6}), sa = f32({{"m", 2}, {"g", 2}}, {1, 2, 3, 4});
  const Buffer b = i8({{"n", 1}, {"k", 3}}, {127, -127, 1}), sb = f32({{"n", 1}, {"g", 2}}, {0.5f, 8});
  CHECK(same<float>(eval(OpKind::dot_int8, {a, sa, b, sb}, blocks_of({"k"}, 2)),
                    {-63.5f + 3 * 8 * 2, -63.5f * 3 + 6 * 8 * 4}));
  // 2^100 * 2^100 overflows, unless the right scale meets 0 first: 0 * inf is not made.
  const Buffer big = f32({{"m", 1}, {"g", 1}}, {0x1p100f}), small = f32({{"n", 1}, {"g", 1}}, {0x1p-120f});
  const Buffer one = i8({{"m", 1}, {"k", 1}}, {1}), other = i8({{"n", 1}, {"k", 1}}, {1});
  CHECK(eval(OpKind::dot_int8, {one, big, other, small}, blocks_of({"k"}, 2)).item<float>() == 0x1p-20f);
  // A product of 2^-130 is flushed before a large left scale meets it; a large right scale meets it first.
  const Buffer tiny = f32({{"n", 1}, {"g", 1}}, {0x1p-126f}), half = f32({{"m", 1}, {"g", 1}}, {0x1p-126f});
  CHECK(eval(OpKind::dot_int8, {one, half, other, tiny}, blocks_of({"k"}, 2)).item<float>() == 0);
}

TEST_CASE("operands that were not quantised alike are refused") {
  const Buffer x = f32({{"m", 2}, {"k", 4}}, std::vector<float>(8, 1.0f));
  const auto q = nearest(x, {"k"}, 2), rows = nearest(x, {"k"}, 4);
  const auto error = [](const std::vector<Buffer>& in, int64_t block) {
    const auto result = try_eval(OpKind::dot_int8, in, blocks_of({"k"}, block));
    return result.ok() ? "" : result.error().message();
  };
  CHECK(error({q[0], q[1], q[0], q[1]}, 2).find("\"m\", which is not contracted") != std::string::npos);
  CHECK(error({q[0], rows[1], q[0], q[1]}, 2).find("quantize over [k] in blocks of 2 gives") !=
        std::string::npos);
  CHECK(error({q[0], q[1], q[0], q[1]}, 1041).find("1 to 1040") != std::string::npos);
}

}  // namespace
}  // namespace ostro::interp
