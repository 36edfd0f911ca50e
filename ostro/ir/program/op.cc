#include "ostro/ir/program/op.h"

#include <array>

namespace ostro::ir {
namespace {
constexpr std::array<const char*, kOpCount> kNames = {
#define X(name) #name,
    OSTRO_OPS(X)
#undef X
};
bool between(OpKind k, OpKind first, OpKind last) { return k >= first && k <= last; }
}  // namespace

const char* op_name(OpKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<OpKind> parse_op(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (name == kNames[static_cast<size_t>(i)]) return static_cast<OpKind>(i);
  return std::nullopt;
}

bool is_elementwise(OpKind k) { return between(k, OpKind::neg, OpKind::select); }
bool is_layout(OpKind k) { return between(k, OpKind::transpose, OpKind::reverse) && k != OpKind::pad; }
bool is_collective(OpKind k) { return between(k, OpKind::all_gather, OpKind::exchange_leaves); }

}  // namespace ostro::ir
