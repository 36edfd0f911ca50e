// OpRow: a row of an engine's table of ops: a function and the ops that it executes. function_of reads such a
// table, names_every_op checks one while it is compiled. Pure functions, for any thread.
#pragma once

#include <initializer_list>

#include "ostro/ir/program/op.h"

namespace ostro::ir {

template <typename Function>
struct OpRow {
  Function run;
  std::initializer_list<OpKind> kinds;
};

template <typename Rows>
constexpr bool names_op(const Rows& rows, OpKind kind) {
  for (const auto& row : rows)
    for (const OpKind named : row.kinds)
      if (named == kind) return true;
  return false;
}

// The function of the row that has the op; nullptr when no row has it.
template <typename Rows>
constexpr auto function_of(const Rows& rows, OpKind kind) -> decltype(rows[0].run) {
  for (const auto& row : rows)
    for (const OpKind named : row.kinds)
      if (named == kind) return row.run;
  return nullptr;
}

// It looks at kinds alone: with -fsanitize=undefined, gcc takes no address for a constant (its bug 71962).
template <typename Rows>
constexpr bool names_every_op(const Rows& rows) {
  for (int kind = 0; kind < kOpCount; ++kind)
    if (!names_op(rows, static_cast<OpKind>(kind))) return false;
  return true;
}

}  // namespace ostro::ir
