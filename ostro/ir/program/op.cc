#include "ostro/ir/program/op.h"

#include <array>

namespace ostro::ir {
namespace {
constexpr std::array<const char*, kOpCount> kNames = {
#define X(name, family) #name,
    OSTRO_OPS(X)
#undef X
};
constexpr std::array<OpFamily, kOpCount> kFamilies = {
#define X(name, family) OpFamily::family,
    OSTRO_OPS(X)
#undef X
};
}  // namespace

const char* op_name(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<OpKind> parse_op(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (name == kNames[static_cast<size_t>(i)]) return static_cast<OpKind>(i);
  return std::nullopt;
}

OpFamily op_family(OpKind kind) { return kFamilies[static_cast<size_t>(kind)]; }

bool is_elementwise(OpKind k) { return op_family(k) == OpFamily::elementwise; }
bool is_layout(OpKind k) { return op_family(k) == OpFamily::layout; }
bool is_collective(OpKind k) { return op_family(k) == OpFamily::collective; }

}  // namespace ostro::ir
