#include "ostro/ir/program/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::ir {

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u32: return "u32";
    case DType::boolean: return "bool";
    case DType::i8: return "i8";
  }
  return "?";
}

bool is_axis_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '\'' || c == '/' || c == '-';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (DType d :
       {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u32, DType::boolean, DType::i8})
    if (name == dtype_name(d)) return d;
  return std::nullopt;
}

int64_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::bf16: return 2;
    case DType::f64:
    case DType::i64: return 8;
    case DType::boolean:
    case DType::i8: return 1;
  }
  return 0;
}

bool is_floating(DType d) { return d == DType::f32 || d == DType::bf16 || d == DType::f64; }
bool is_integer(DType d) { return d == DType::i32 || d == DType::i64 || d == DType::u32; }

int64_t Shape::count() const {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}

int64_t Shape::find(std::string_view name) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

int64_t Shape::size_of(std::string_view name) const {
  const int64_t i = find(name);
  OSTRO_CHECK(i >= 0, "no axis \"{}\" in {}", name, str());
  return axes[static_cast<size_t>(i)].size;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> s(axes.size());
  int64_t n = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    s[i] = n;
    n *= axes[i].size;
  }
  return s;
}

Shape Shape::without(std::string_view name) const {
  Shape s{dtype, {}};
  for (const Axis& a : axes)
    if (a.name != name) s.axes.push_back(a);
  return s;
}

std::vector<std::string> Shape::names() const {
  std::vector<std::string> n;
  for (const Axis& a : axes) n.push_back(a.name);
  return n;
}

std::string Shape::str() const {
  std::string s = dtype_name(dtype);
  s += '[';
  for (size_t i = 0; i < axes.size(); ++i)
    s += fmt::format("{}{}:{}", i == 0 ? "" : ", ", axes[i].name, axes[i].size);
  return s + ']';
}

Shape scalar(DType dtype) { return Shape{dtype, {}}; }

}  // namespace ostro::ir
