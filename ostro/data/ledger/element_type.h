// ElementType: the types of array elements on disk, with their names and sizes. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ostro::data {

enum class ElementType { kUint8, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32 };

// The name in Zarr, e.g. "int64".
const char* element_name(ElementType type);
// Nothing for any other name.
std::optional<ElementType> parse_element(std::string_view name);
size_t element_bytes(ElementType type);
bool is_integer(ElementType type);

// Calls visit(span<const T>), where T is the C++ type of the elements. `bytes` must be whole elements.
template <typename Visit>
auto visit_elements(ElementType type, std::span<const std::byte> bytes, const Visit& visit) {
  const auto as = [&]<typename T>(T) {
    return visit(std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)));
  };
  switch (type) {
    case ElementType::kUint8: return as(uint8_t{});
    case ElementType::kUint16: return as(uint16_t{});
    case ElementType::kInt32: return as(int32_t{});
    case ElementType::kUint32: return as(uint32_t{});
    case ElementType::kUint64: return as(uint64_t{});
    case ElementType::kFloat32: return as(float{});
    case ElementType::kInt64: break;
  }
  return as(int64_t{});
}

}  // namespace ostro::data
