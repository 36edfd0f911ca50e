#include <doctest/doctest.h>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

using ir::Axis;
using ir::DType;
using Strings = std::vector<std::string>;

Buffer i8(std::vector<Axis> axes, const std::vector<int8_t>& values) {
  return Buffer::copy_of({DType::i8, std::move(axes)}, values.data());
}

Buffer dequantized(const Buffer& w, const Buffer& scales, Strings over) {
  return eval(OpKind::dequantize, {w, scales}, {{"over", std::move(over)}, {"groups", std::string("g")}});
}

TEST_CASE("dequantize gives each group of rows its own scales") {
  const Buffer w = i8({{"k", 4}, {"n", 2}}, {1, 2, 3, 4, 5, 6, -128, 127});
  const Buffer y = dequantized(w, f32({{"g", 2}, {"n", 2}}, {0.5f, 2, 10, -1}), {"k"});
  const float expected[] = {0.5f, 4, 1.5f, 8, 50, -6, -1280, -127};
  for (size_t i = 0; i < 8; ++i) CHECK(y.as<float>()[i] == expected[i]);
}

TEST_CASE("dequantize counts rows of several axes row-major, and axes before them apart") {
  const Buffer w = i8({{"e", 2}, {"h", 2}, {"d", 2}}, {1, 2, 3, 4, 5, 6, 7, 8});
  // One scale for each two of the four rows (h, d) of each e.
  const Buffer y = dequantized(w, f32({{"e", 2}, {"g", 2}}, {1, 10, 100, 1000}), {"h", "d"});
  const float expected[] = {1, 2, 30, 40, 500, 600, 7000, 8000};
  for (size_t i = 0; i < 8; ++i) CHECK(y.as<float>()[i] == expected[i]);
}

TEST_CASE("dequantize rounds once to bf16, ties to even") {
  // 127 * (1 + 2^-7) = 127 + 127/128: between 127.5 and 128, nearer to 128. 3 * (1 + 2^-7) = 3 + 3/128 is
  // exactly between 3 + 1/64 and 3 + 2/64.
  const Buffer scale =
      Buffer::copy_of({DType::bf16, {{"g", 1}, {"n", 1}}}, std::vector<uint16_t>{0x3f81}.data());
  const Buffer y = dequantized(i8({{"k", 2}, {"n", 1}}, {127, 3}), scale, {"k"});
  CHECK(y.shape().dtype == DType::bf16);
  CHECK(y.as<uint16_t>()[0] == 0x4300);  // 128
  CHECK(y.as<uint16_t>()[1] == 0x4042);  // 3 + 2/64
}

}  // namespace
}  // namespace ostro::interp
