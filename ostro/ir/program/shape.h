// Shape, Axis, DType: the type of every value: an ordered list of named axes and an element type.
//
// The order of the axes is the memory layout (row-major, last axis fastest). It changes results in one case
// only: it fixes the order in which a contraction adds (docs/spec/numerics.md, N4-N7). Values; pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::ir {

// i8 is for stored matrices: it is moved, cast and dequantised, and there is no arithmetic on it.
enum class DType { f32, bf16, f64, i32, i64, u32, boolean, i8 };

// "f32", "bf16", "f64", "i32", "i64", "u32", "bool", "i8".
const char* dtype_name(DType dtype);
// The type of this name; nothing if there is none.
std::optional<DType> parse_dtype(std::string_view name);
// Bytes of one element (bool is one byte, 0 or 1).
int64_t dtype_size(DType dtype);
bool is_floating(DType dtype);
bool is_integer(DType dtype);  // i32, i64, u32: the types of integer arithmetic

// True for a name of at least one character, made of letters, digits and _ . ' / - only. These are the names
// that the text form can hold (text.h).
bool is_axis_name(std::string_view name);

struct Axis {
  std::string name;
  int64_t size = 0;
  bool operator==(const Axis&) const = default;
};

struct Shape {
  DType dtype = DType::f32;
  std::vector<Axis> axes;

  bool operator==(const Shape&) const = default;

  int64_t rank() const { return static_cast<int64_t>(axes.size()); }
  // Number of elements; 1 for a scalar.
  int64_t count() const;
  int64_t bytes() const { return count() * dtype_size(dtype); }
  // Position of the axis, or -1.
  int64_t find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) >= 0; }
  // Size of the axis; the process aborts when there is no such axis.
  int64_t size_of(std::string_view name) const;
  // Row-major strides in elements.
  std::vector<int64_t> strides() const;
  Shape with_dtype(DType other) const { return Shape{other, axes}; }
  // This shape without that axis.
  Shape without(std::string_view name) const;
  std::vector<std::string> names() const;
  // "f32[batch:4, pos:16]".
  std::string str() const;
};

// The shape without axes.
Shape scalar(DType dtype);

}  // namespace ostro::ir
