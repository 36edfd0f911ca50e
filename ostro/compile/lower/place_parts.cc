// Kernels write the parts of a stack or concat where they belong in the joined value, which no step makes
// then.
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
    // Results may lie in a parameter's memory, so that their first write must be all of them; parts of single
    // elements would be written one by one.
    if (place_[static_cast<size_t>(joined)].buffer >= 0 || at + 1 == shape.rank()) continue;
    std::vector<std::string> names = shape.names();
    if (op.kind == OpKind::stack) names.erase(names.begin() + at);
    const auto fits = [&](ValueId v) {
      const Unit* kernel = kernel_of[static_cast<size_t>(v)];
      if (kernel == nullptr || uses[static_cast<size_t>(v)] != 1 || !is_root(v)) return false;
      if (place_[static_cast<size_t>(v)].buffer >= 0 || block_.shape(v).names() != names) return false;
      // A part's axes before `at` lie further apart than its elements go. A kernel of rows walks the leading
      // axes one by one, but a row's elements in one run.
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
