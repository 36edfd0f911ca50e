// The operands (parts) of a stack or concat that kernels make: each kernel writes its part directly into the
// result of the stack or concat. Then no step is needed to copy the parts together.
#include <algorithm>

#include "ostro/compile/lower/lower.h"

namespace ostro::compile {

using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

void BlockLowering::place_parts(const std::vector<Unit>& units) {
  std::vector<int32_t> uses(block_.values.size(), 0);
  for (const Op& op : block_.ops)
    for (ValueId v : op.operands) ++uses[static_cast<size_t>(v)];
  for (ValueId v : block_.results) ++uses[static_cast<size_t>(v)];
  std::vector<const Unit*> kernel_of(block_.values.size(), nullptr);
  for (const Unit& unit : units)
    if (unit.kind == UnitKind::kGroup)
      for (ValueId v : unit.stored) kernel_of[static_cast<size_t>(v)] = &unit;
  for (const Op& op : block_.ops) {
    if (op.kind != OpKind::stack && op.kind != OpKind::concat) continue;
    const ValueId joined = op.results[0];
    const Shape& shape = block_.shape(joined);
    const int64_t at = shape.find(op.attrs.str("axis"));
    // Two exceptions. A result of the plan may share memory with a parameter, so one step must write all of
    // it. And when the joined axis is the last one, a part's elements would have to be written one at a time.
    if (place_[static_cast<size_t>(joined)].buffer >= 0 || at + 1 == shape.rank()) continue;
    std::vector<std::string> names = shape.names();
    if (op.kind == OpKind::stack) names.erase(names.begin() + at);
    const auto fits = [&](ValueId v) {
      const Unit* kernel = kernel_of[static_cast<size_t>(v)];
      if (kernel == nullptr || uses[static_cast<size_t>(v)] != 1 || !is_root(v)) return false;
      if (place_[static_cast<size_t>(v)].buffer >= 0 || block_.shape(v).names() != names) return false;
      // The axes of a part before `at` have gaps between them in the joined value. A kernel with rows can
      // step over gaps between rows, but the elements of a row must be one run of memory.
      return kernel->split < 0 || block_.shape(v).rank() == kernel->split || at <= kernel->split;
    };
    if (!std::all_of(op.operands.begin(), op.operands.end(), fits)) continue;
    const View whole = destination(joined);
    int64_t start = 0;
    for (ValueId v : op.operands) {
      View part = whole;
      part.shape = block_.shape(v);
      part.offset += start * whole.strides[static_cast<size_t>(at)];
      if (op.kind == OpKind::stack) part.strides.erase(part.strides.begin() + at);
      start += op.kind == OpKind::stack ? 1 : part.shape.axes[static_cast<size_t>(at)].size;
      place_[static_cast<size_t>(v)] = std::move(part);
    }
    is_joined_[static_cast<size_t>(joined)] = 1;
  }
}

}  // namespace ostro::compile
