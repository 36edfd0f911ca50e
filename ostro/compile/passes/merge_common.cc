// merge_common: common subexpressions: an op that equals an earlier one of its block is removed, and its
// readers read the earlier one's results.
#include <bit>
#include <map>

#include "ostro/compile/passes/pass.h"
#include "ostro/compile/passes/rewrite.h"

namespace ostro::compile {
namespace {

using ir::Block;
using ir::Op;

// Doubles by bits: -0 and +0 are different constants.
bool same_attrs(const ir::Attrs& a, const ir::Attrs& b) {
  if (a.all().size() != b.all().size()) return false;
  auto other = b.all().begin();
  for (const auto& [name, value] : a.all()) {
    if (name != other->first || value.index() != other->second.index()) return false;
    if (const double* d = std::get_if<double>(&value)) {
      if (std::bit_cast<uint64_t>(*d) != std::bit_cast<uint64_t>(std::get<double>(other->second)))
        return false;
    } else if (value != other->second) {
      return false;
    }
    ++other;
  }
  return true;
}

// Ops are equal when kind, operands (after replacements) and attributes are. Ops with regions and collectives
// are never merged.
void merge(Block& block) {
  Replacement now(block.values.size());
  std::map<std::pair<ir::OpKind, std::vector<ir::ValueId>>, std::vector<size_t>> seen;
  std::vector<Op> kept;
  for (Op& op : block.ops) {
    now.apply(op.operands);
    for (Block& region : op.regions) merge(region);
    if (op.regions.empty() && !ir::is_collective(op.kind)) {
      std::vector<size_t>& candidates = seen[{op.kind, op.operands}];
      const Op* same = nullptr;
      for (size_t i : candidates)
        if (same_attrs(kept[i].attrs, op.attrs)) same = &kept[i];
      if (same != nullptr) {
        for (size_t i = 0; i < op.results.size(); ++i) now.replace(op.results[i], same->results[i]);
        continue;
      }
      candidates.push_back(kept.size());
    }
    kept.push_back(std::move(op));
  }
  block.ops = std::move(kept);
  now.apply(block.results);
}

}  // namespace

void merge_common(ir::Program& program, const runtime::CompileOptions&) { merge(program.body); }

}  // namespace ostro::compile
