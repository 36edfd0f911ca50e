// find_units: decides which ops of a block become one generated kernel.
//
// A group has a domain: the positions that its loop nest visits. Without reductions, all its ops have that
// domain. With row reductions, the leading axes of the domain are the rows and the axes after them are
// reduced. Ops at "row level" have one value per row, so only the leading axes. Operands from outside the
// group are loaded with any strides. Values inside the group stay in registers: an op reads them at the same
// position, or broadcast from a row.
//
// A serial sum (docs/spec/numerics.md, N5) is always a separate unit. It computes the elementwise ops before
// it again, because that is cheaper than to write their result to memory and read it back; but not an op
// whose result others need as well, where that reads more than one array.
//
// Pure functions of a checked block; there are no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/compile/plan/view.h"
#include "ostro/numerics/leaves.h"

namespace ostro::compile {

enum class UnitKind { kSingle, kGroup, kSerial };

// The reason why two neighbouring units cannot be fused.
enum class Refusal {
  kNone,
  kRoutine,  // one of them is neither elementwise nor a reduction of rows: a built-in routine runs it
  kSerial,   // one of them is a serial sum
  kSizes,    // their loops have different sizes
  kRows,     // their rows end at different axes
  kPlace,    // the value is read at another position than it is written: transposed, sliced, or across rows
  kStrides,  // in some operand the reduced axes are not one run of memory with one stride
  kTooManyOps,    // too many for one function
  kTooManyLoads,  // too many for one function
  kDetour,        // a third unit reads the first one and is read by the second
};

// A value that a unit reads and that another unit makes.
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
  std::vector<ir::ValueId> stored;  // values that are read outside of it
  std::vector<Barrier> barriers;    // with FusionInput::reasons
};

struct FusionInput {
  const ir::Block& block;
  const std::vector<View>& relative;  // by value: a view on its root (buffer = root's ValueId)
  const std::vector<char>& is_view;   // by op: it is only a view, no code is needed for it
  const numerics::LeafTable& leaves;
  bool fuse;
  bool reasons = false;
};

// The reason, in words, why the unit does not compute that value itself.
std::string refusal_text(const Barrier& barrier, const Unit& unit, const ir::Block& block);

// The units in an order in which they can run. Units whose values are not read are left out.
std::vector<Unit> find_units(const FusionInput& input);

}  // namespace ostro::compile
