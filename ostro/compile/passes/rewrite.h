// Replacement, definitions, use_counts: helpers for passes that replace values.
#pragma once

#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

// Values and their replacements: find(v) is the value that stands for v now.
class Replacement {
 public:
  explicit Replacement(size_t values) : now_(values) {
    for (size_t i = 0; i < values; ++i) now_[i] = static_cast<ir::ValueId>(i);
  }
  ir::ValueId find(ir::ValueId v) const {
    while (now_[static_cast<size_t>(v)] != v) v = now_[static_cast<size_t>(v)];
    return v;
  }
  void replace(ir::ValueId v, ir::ValueId by) { now_[static_cast<size_t>(v)] = by; }
  void apply(std::vector<ir::ValueId>& values) const {
    for (ir::ValueId& v : values) v = find(v);
  }

 private:
  std::vector<ir::ValueId> now_;
};

// The op that defines each value of a block, or -1 (parameters).
inline std::vector<int32_t> definitions(const ir::Block& block) {
  std::vector<int32_t> def(block.values.size(), -1);
  for (size_t i = 0; i < block.ops.size(); ++i)
    for (ir::ValueId v : block.ops[i].results) def[static_cast<size_t>(v)] = static_cast<int32_t>(i);
  return def;
}

// How many operands and results of a block each of its values is; regions are not looked into.
inline std::vector<int32_t> use_counts(const ir::Block& block) {
  std::vector<int32_t> uses(block.values.size(), 0);
  for (const ir::Op& op : block.ops)
    for (ir::ValueId v : op.operands) ++uses[static_cast<size_t>(v)];
  for (ir::ValueId v : block.results) ++uses[static_cast<size_t>(v)];
  return uses;
}

}  // namespace ostro::compile
