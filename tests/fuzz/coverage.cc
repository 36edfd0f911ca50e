#include "coverage.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace ostro::fuzz {
namespace {

// Which ops the values depend on.
std::vector<char> needed_ops(const ir::Block& block, std::span<const ir::ValueId> values) {
  std::vector<char> value(block.values.size(), 0), op(block.ops.size(), 0);
  for (ir::ValueId v : values) value[static_cast<size_t>(v)] = 1;
  for (size_t i = block.ops.size(); i-- > 0;) {
    const ir::Op& o = block.ops[i];
    if (std::none_of(o.results.begin(), o.results.end(),
                     [&](ir::ValueId r) { return value[static_cast<size_t>(r)] != 0; }))
      continue;
    op[i] = 1;
    for (ir::ValueId v : o.operands) value[static_cast<size_t>(v)] = 1;
  }
  return op;
}

// Which ops depend on the values.
std::vector<char> dependent_ops(const ir::Block& block, std::span<const ir::ValueId> values) {
  std::vector<char> value(block.values.size(), 0), op;
  for (ir::ValueId v : values) value[static_cast<size_t>(v)] = 1;
  for (const ir::Op& o : block.ops) {
    op.push_back(std::any_of(o.operands.begin(), o.operands.end(),
                             [&](ir::ValueId v) { return value[static_cast<size_t>(v)] != 0; }));
    if (op.back() != 0)
      for (ir::ValueId r : o.results) value[static_cast<size_t>(r)] = 1;
  }
  return op;
}

// The chosen ops and those of their regions that run and are needed: see(op, its block, whether in a scan).
template <typename See>
void visit(const ir::Block& block, const std::vector<char>& chosen, bool in_scan, const See& see) {
  for (size_t i = 0; i < block.ops.size(); ++i) {
    if (chosen[i] == 0) continue;
    const ir::Op& op = block.ops[i];
    see(op, block, in_scan);
    const size_t run = op.kind == ir::OpKind::custom ? 1 : op.regions.size();
    for (size_t r = 0; r < run; ++r)
      visit(op.regions[r], needed_ops(op.regions[r], op.regions[r].results),
            in_scan || op.kind == ir::OpKind::scan, see);
  }
}

// The ops through which the derivative flows. `custom` is gone from the program then, its rules in its place.
std::vector<char> active_ops(const Derivative& d) {
  std::vector<ir::ValueId> wrt;
  for (int64_t p : d.wrt) wrt.push_back(d.function.params[static_cast<size_t>(p)]);
  std::vector<char> active = needed_ops(d.function, std::span(d.function.results).first(1));
  const std::vector<char> dependent = dependent_ops(d.function, wrt);
  for (size_t i = 0; i < active.size(); ++i) active[i] = static_cast<char>(active[i] & dependent[i]);
  return active;
}

}  // namespace

void Coverage::add(const RandomCase& c) {
  const ir::Block& body = c.program.body;
  int64_t ops = 0;
  auto see = [&](const ir::Op& op, const ir::Block& block, bool in_scan) {
    ++ops;
    const ir::DType dtype = dtype_of(op, block);
    seen_.insert({op.kind, dtype, Place::anywhere});
    if (in_scan) seen_.insert({op.kind, dtype, Place::in_scan});
    for (const std::string& axis : contracted_axes(op, block))
      if (c.program.leaves.count(axis) > 1) seen_.insert({op.kind, dtype, Place::leaf_cut});
  };
  visit(body, needed_ops(body, body.results), false, see);
  op_counts_.push_back(ops);
  if (!c.derivative) return;
  auto see_differentiated = [&](const ir::Op& op, const ir::Block& block, bool) {
    seen_.insert({op.kind, dtype_of(op, block), Place::differentiated});
  };
  visit(c.derivative->function, active_ops(*c.derivative), false, see_differentiated);
  const auto gradients = std::span(body.results).subspan(c.derivative->first_gradient);
  visit(body, needed_ops(body, gradients), false, see_differentiated);
}

std::vector<Combination> Coverage::missing() const {
  std::vector<Combination> list;
  const auto& legal = legal_combinations();
  std::set_difference(legal.begin(), legal.end(), seen_.begin(), seen_.end(), std::back_inserter(list));
  return list;
}

double Coverage::median_ops() const {
  std::vector<int64_t> sorted = op_counts_;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : static_cast<double>(sorted[sorted.size() / 2]);
}

}  // namespace ostro::fuzz
