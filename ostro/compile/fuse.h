// Which ops of a block become one generated kernel.
//
// A group has a domain: the positions its loop nest walks. Without reductions all its ops have that domain.
// With row reductions the domain splits into rows (the leading axes) and the reduced axes behind them; ops on
// whole rows ("row level") have the leading axes alone. Operands from outside are loaded through any strides;
// values of the group are handed over in registers, at the same position or broadcast from a row.
//
// A serial sum (docs/numerics.md, N5) is a unit of its own that computes the elementwise ops before it again:
// cheaper than their result's way through memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/compile/view.h"
#include "ostro/numerics/leaves.h"

namespace ostro::compile {

enum class UnitKind { kSingle, kGroup, kSerial };

struct Unit {
  UnitKind kind = UnitKind::kSingle;
  std::vector<int32_t> ops;         // ascending; kSerial: the inlined ones, then the sum
  std::vector<int64_t> domain;      // sizes; kSerial: of the summed value
  int64_t split = -1;               // number of leading axes that make a row; -1: no reductions
  std::vector<ir::ValueId> stored;  // values that somebody outside reads
};

struct FusionInput {
  const ir::Block& block;
  const std::vector<View>& relative;  // by value: a view on its root (buffer = root's ValueId)
  const std::vector<char>& is_view;   // by op: nothing to do for it
  const numerics::LeafTable& leaves;
  bool fuse;
};

// Units in an order in which they can run; dead ones are left out.
std::vector<Unit> find_units(const FusionInput& input);

}  // namespace ostro::compile
