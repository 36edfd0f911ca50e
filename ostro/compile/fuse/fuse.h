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
#include <string>
#include <vector>

#include "ostro/compile/plan/view.h"
#include "ostro/numerics/leaves.h"

namespace ostro::compile {

enum class UnitKind { kSingle, kGroup, kSerial };

// Why two neighbouring units stay apart.
enum class Refusal {
  kNone,
  kRoutine,       // one of them is no elementwise op nor a reduction of rows: a built-in routine runs it
  kSerial,        // one of them is a serial sum
  kSizes,         // their loops have other sizes
  kRows,          // their rows end at other axes
  kPlace,         // the value is read elsewhere than it was written: transposed, sliced, or across rows
  kStrides,       // the reduced axes do not lie in one run in some operand
  kTooManyOps,    // for one function
  kTooManyLoads,  // likewise
  kDetour,        // a unit between them needs the one and is needed by the other
};

// A value that a unit reads, of another unit.
struct Barrier {
  ir::ValueId value = -1;  // a root
  int32_t producer = -1;   // its op
  Refusal why = Refusal::kNone;
  int32_t through = -1;  // kDetour: an op of the unit between
};

struct Unit {
  UnitKind kind = UnitKind::kSingle;
  std::vector<int32_t> ops;         // ascending; kSerial: the inlined ones, then the sum
  std::vector<int64_t> domain;      // sizes; kSerial: of the summed value
  int64_t split = -1;               // number of leading axes that make a row; -1: no reductions
  std::vector<ir::ValueId> stored;  // values that somebody outside reads
  std::vector<Barrier> barriers;    // with FusionInput::reasons
};

struct FusionInput {
  const ir::Block& block;
  const std::vector<View>& relative;  // by value: a view on its root (buffer = root's ValueId)
  const std::vector<char>& is_view;   // by op: nothing to do for it
  const numerics::LeafTable& leaves;
  bool fuse;
  bool reasons = false;
};

// Why a unit does not compute that value itself, in words.
std::string refusal_text(const Barrier& barrier, const Unit& unit, const ir::Block& block);

// Units in an order in which they can run; dead ones are left out.
std::vector<Unit> find_units(const FusionInput& input);

}  // namespace ostro::compile
