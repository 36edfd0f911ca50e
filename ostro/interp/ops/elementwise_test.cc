#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("float arithmetic rounds once; bf16 is read exactly and gives f32") {
  const Buffer a = f32({{"n", 4}}, {1, -0.0f, 0.1f, 3}), b = f32({{"n", 4}}, {2, 0, 0.2f, -2});
  CHECK(same<float>(eval(OpKind::add, {a, b}), {3, 0, 0.1f + 0.2f, 1}));
  CHECK(same<float>(eval(OpKind::sub, {a, b}), {-1, -0.0f, 0.1f - 0.2f, 5}));
  CHECK(same<float>(eval(OpKind::mul, {a, b}), {2, -0.0f, 0.1f * 0.2f, -6}));
  CHECK(same<float>(eval(OpKind::div, {a, f32({{"n", 4}}, {2, 1, 3, 0})}), {0.5f, -0.0f, 0.1f / 3, kInf}));
  CHECK(same<float>(eval(OpKind::min, {a, b}), {1, -0.0f, 0.1f, -2}));
  CHECK(same<float>(eval(OpKind::max, {a, b}), {2, 0, 0.2f, 3}));
  CHECK(std::isnan(eval(OpKind::max, {f32({}, {kNan}), f32({}, {1})}).item<float>()));
  CHECK(same<float>(eval(OpKind::mul, {bf16({{"n", 1}}, {1.5f}), f32({{"n", 1}}, {0.1f})}), {1.5f * 0.1f}));
  // A product below the smallest normal number is flushed (N0).
  CHECK(same<float>(eval(OpKind::mul, {f32({}, {0x1p-126f}), f32({}, {-0.5f})}), {-0.0f}));
}

TEST_CASE("functions of one operand") {
  const Buffer x = f32({{"n", 3}}, {0.25f, 1, 4});
  CHECK(same<float>(eval(OpKind::neg, {f32({{"n", 2}}, {0, -3})}), {-0.0f, 3}));
  CHECK(same<float>(eval(OpKind::abs, {f32({{"n", 2}}, {-0.0f, -3})}), {0, 3}));
  CHECK(same<float>(eval(OpKind::sqrt, {x}), {0.5f, 1, 2}));
  CHECK(same<float>(eval(OpKind::rsqrt, {x}), {2, 1, 0.5f}));
  CHECK(same<float>(eval(OpKind::log2, {x}), {-2, 0, 2}));
  CHECK(same<float>(eval(OpKind::floor, {f32({{"n", 3}}, {-0.5f, 2.7f, -0.0f})}), {-1, 2, -0.0f}));
  CHECK(eval(OpKind::exp, {f32({}, {0})}).item<float>() == 1);
  CHECK(eval(OpKind::sigmoid, {f32({}, {0})}).item<float>() == 0.5f);
  for (OpKind k : {OpKind::log1p, OpKind::tanh, OpKind::sin, OpKind::erf, OpKind::erfinv})
    CHECK(same<float>(eval(k, {f32({}, {0})}), {0}));
  CHECK(eval(OpKind::cos, {f32({}, {0})}).item<float>() == 1);
  CHECK(eval(OpKind::log, {f32({}, {1})}).item<float>() == 0);
  CHECK(same<uint8_t>(eval(OpKind::is_finite, {f32({{"n", 3}}, {1, kInf, kNan})}), {1, 0, 0}));
  CHECK(same<uint8_t>(eval(OpKind::logical_not, {boolean({{"n", 2}}, {0, 1})}), {1, 0}));
}

TEST_CASE("integers wrap; division truncates and never traps") {
  const int32_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  const Buffer a = i32({{"n", 4}}, {high, low, -7, 5}), b = i32({{"n", 4}}, {1, -1, 2, 0});
  CHECK(same<int32_t>(eval(OpKind::add, {a, b}), {low, high, -5, 5}));
  CHECK(same<int32_t>(eval(OpKind::div, {a, b}), {high, low, -3, 0}));
  CHECK(same<int32_t>(eval(OpKind::rem, {a, b}), {0, 0, -1, 0}));
  CHECK(same<int32_t>(eval(OpKind::neg, {i32({}, {low})}), {low}));
  const Buffer count = i32({{"n", 4}}, {1, 31, 32, -1});
  CHECK(same<int32_t>(eval(OpKind::shl, {i32({{"n", 4}}, {3, 1, 1, 1}), count}), {6, low, 0, 0}));
  CHECK(same<int32_t>(eval(OpKind::shr, {i32({{"n", 4}}, {-8, low, -5, 5}), count}), {-4, -1, -1, 0}));
  CHECK(same<int32_t>(eval(OpKind::bit_and, {i32({}, {6}), i32({}, {3})}), {2}));
  CHECK(same<int32_t>(eval(OpKind::bit_or, {i32({}, {6}), i32({}, {3})}), {7}));
  CHECK(same<int32_t>(eval(OpKind::bit_xor, {i32({}, {6}), i32({}, {3})}), {5}));
}

TEST_CASE("comparisons and select") {
  const Buffer a = f32({{"n", 3}}, {1, kNan, -0.0f}), b = f32({{"n", 3}}, {2, 1, 0});
  CHECK(same<uint8_t>(eval(OpKind::eq, {a, b}), {0, 0, 1}));
  CHECK(same<uint8_t>(eval(OpKind::ne, {a, b}), {1, 1, 0}));
  CHECK(same<uint8_t>(eval(OpKind::lt, {a, b}), {1, 0, 0}));
  CHECK(same<uint8_t>(eval(OpKind::le, {a, b}), {1, 0, 1}));
  CHECK(same<uint8_t>(eval(OpKind::gt, {a, b}), {0, 0, 0}));
  CHECK(same<uint8_t>(eval(OpKind::ge, {a, b}), {0, 0, 1}));
  CHECK(same<float>(eval(OpKind::select, {boolean({{"n", 3}}, {1, 0, 1}), b, f32({{"n", 3}}, {7, 8, 9})}),
                    {2, 8, 0}));
}

TEST_CASE("casts round once, saturate and keep bf16's rules") {
  auto cast = [](const Buffer& x, const char* dtype) {
    return eval(OpKind::cast, {x}, {{"dtype", std::string(dtype)}});
  };
  CHECK(same<int32_t>(cast(f32({{"n", 4}}, {-1.9f, 3e9f, kNan, -kInf}), "i32"),
                      {-1, 2147483647, 0, std::numeric_limits<int32_t>::min()}));
  CHECK(same<uint32_t>(cast(f32({{"n", 2}}, {-1, 5e9f}), "u32"), {0, 4294967295u}));
  CHECK(same<uint16_t>(cast(f32({{"n", 3}}, {1.00390625f, 1.01171875f, 0x1p-130f}), "bf16"),
                       {0x3f80, 0x3f82, 0}));
  CHECK(same<float>(cast(i32({{"n", 2}}, {16777217, -3}), "f32"), {16777216, -3}));
  CHECK(same<uint8_t>(cast(f32({{"n", 3}}, {-0.0f, 0.5f, kNan}), "bool"), {0, 1, 1}));
  CHECK(same<float>(cast(boolean({{"n", 2}}, {0, 1}), "f32"), {0, 1}));
  CHECK(same<uint32_t>(cast(i32({}, {-1}), "u32"), {4294967295u}));
  CHECK(same<float>(cast(make<double>(ir::DType::f64, {}, {0.1}), "f32"), {0.1f}));
  CHECK(same<uint16_t>(eval(OpKind::use, {f32({}, {1.01171875f})}, {{"dtype", std::string("bf16")}}),
                       {0x3f82}));
}

}  // namespace
}  // namespace ostro::interp
