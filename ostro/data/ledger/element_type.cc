#include "ostro/data/ledger/element_type.h"

namespace ostro::data {
namespace {

struct Entry {
  ElementType type;
  const char* name;
  size_t bytes;
};

// In the order of ElementType.
constexpr Entry kEntries[] = {{ElementType::kUint8, "uint8", 1},    {ElementType::kUint16, "uint16", 2},
                              {ElementType::kInt32, "int32", 4},    {ElementType::kUint32, "uint32", 4},
                              {ElementType::kInt64, "int64", 8},    {ElementType::kUint64, "uint64", 8},
                              {ElementType::kFloat32, "float32", 4}};

const Entry& entry(ElementType type) { return kEntries[static_cast<size_t>(type)]; }

}  // namespace

const char* element_name(ElementType type) { return entry(type).name; }

std::optional<ElementType> parse_element(std::string_view name) {
  for (const Entry& e : kEntries)
    if (name == e.name) return e.type;
  return std::nullopt;
}

size_t element_bytes(ElementType type) { return entry(type).bytes; }

bool is_integer(ElementType type) { return type != ElementType::kFloat32; }

}  // namespace ostro::data
