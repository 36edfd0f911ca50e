#include "ostro/compile/fuse/constants.h"

#include <cstring>

#include "ostro/base/check.h"
#include "ostro/numerics/bf16.h"

namespace ostro::compile {
namespace {

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> out(sizeof(T));
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  OSTRO_CHECK(c >= 'a' && c <= 'f', "'{}' in the hex data of a constant", c);
  return c - 'a' + 10;
}

}  // namespace

std::vector<std::byte> constant_bytes(const ir::Op& op, const ir::Shape& shape) {
  if (op.attrs.has("data")) {
    const std::string& hex = op.attrs.str("data");
    std::vector<std::byte> out(hex.size() / 2);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
    return out;
  }
  const double value = op.attrs.f64("value");
  switch (shape.dtype) {
    case ir::DType::f32: return bytes_of(static_cast<float>(value));
    case ir::DType::bf16: return bytes_of(numerics::to_bf16(static_cast<float>(value)).bits);
    case ir::DType::f64: return bytes_of(value);
    case ir::DType::i32: return bytes_of(static_cast<int32_t>(value));
    case ir::DType::i64: return bytes_of(static_cast<int64_t>(value));
    case ir::DType::u32: return bytes_of(static_cast<uint32_t>(value));
    case ir::DType::i8: return bytes_of(static_cast<int8_t>(value));
    case ir::DType::boolean: return bytes_of(static_cast<uint8_t>(value != 0));
  }
  return {};
}

}  // namespace ostro::compile
