// elements, make_buffer: elements of buffers as plain vectors, and copies of single elements between buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ostro/interp/core/call.h"
#include "ostro/numerics/bf16.h"

namespace ostro::interp {

// The buffer's elements as T: float for f32 and bf16 (widened exactly), double, int32_t, int64_t, uint32_t,
// uint8_t for bool and int8_t for i8.
template <typename T>
std::vector<T> elements(const Buffer& buffer) {
  std::vector<T> values(static_cast<size_t>(buffer.shape().count()));
  if constexpr (std::is_same_v<T, float>) {
    if (buffer.shape().dtype == DType::bf16) {
      const auto stored = buffer.as<numerics::Bf16>();
      for (size_t i = 0; i < values.size(); ++i) values[i] = numerics::to_f32(stored[i]);
      return values;
    }
  }
  OSTRO_CHECK(ir::dtype_size(buffer.shape().dtype) == sizeof(T), "{} read as {} bytes an element",
              buffer.shape().str(), sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), buffer.bytes().data(), buffer.bytes().size());
  return values;
}

// A buffer of these elements; floats are rounded once when the shape is bf16.
template <typename T>
Buffer make_buffer(const Shape& shape, const std::vector<T>& values) {
  Buffer buffer = Buffer::empty(shape);
  OSTRO_CHECK(static_cast<int64_t>(values.size()) == shape.count(), "{} values for {}", values.size(),
              shape.str());
  if constexpr (std::is_same_v<T, float>) {
    if (shape.dtype == DType::bf16) {
      auto stored = buffer.mutable_as<numerics::Bf16>();
      for (size_t i = 0; i < values.size(); ++i) stored[i] = numerics::to_bf16(values[i]);
      return buffer;
    }
  }
  OSTRO_CHECK(ir::dtype_size(shape.dtype) == sizeof(T), "{} written as {} bytes an element", shape.str(),
              sizeof(T));
  if (!values.empty()) std::memcpy(buffer.mutable_bytes().data(), values.data(), buffer.bytes().size());
  return buffer;
}

// Calls f.template operator()<T>() with the type elements<T> has for the dtype.
template <typename F>
auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i64: return f.template operator()<int64_t>();
    case DType::u32: return f.template operator()<uint32_t>();
    case DType::i8: return f.template operator()<int8_t>();
    case DType::boolean: break;
  }
  return f.template operator()<uint8_t>();
}

// The elements of an i32, i64 or u32 value as i64.
std::vector<int64_t> integers(const Buffer& buffer);

// result[i] = x[from[i]], bits unchanged; all bits zero where from[i] is -1.
Buffer pick(const Buffer& x, const Shape& shape, const std::vector<int64_t>& from);
// out[to[i]] = x[i], bits unchanged.
void place(Buffer& out, const Buffer& x, const std::vector<int64_t>& to);

}  // namespace ostro::interp
