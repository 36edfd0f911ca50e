// kProductRule, kTc16: the attribute of dot, expert_dot and expert_outer that says how a bf16 product is
// summed. Without it the sum is that of docs/spec/numerics.md N7; "tc16" is that of N23. Pure functions.
#pragma once

#include "ostro/ir/program/attrs.h"

namespace ostro::ir {

inline constexpr const char* kProductRule = "rule";
inline constexpr const char* kTc16 = "tc16";

// True for the attributes of a checked product that is summed as N23 says.
inline bool is_tc16(const Attrs& attrs) { return attrs.has(kProductRule); }
// Gives `to` the rule of `from`, if that has one.
inline void copy_rule(const Attrs& from, Attrs& to) {
  if (from.has(kProductRule)) to.set(kProductRule, from.str(kProductRule));
}

}  // namespace ostro::ir
