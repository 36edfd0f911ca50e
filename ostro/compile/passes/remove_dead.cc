// remove_dead: removes what is not read: ops, and inside scans the stacked results, carries and operands of
// the body.
#include <algorithm>

#include "ostro/compile/passes/pass.h"

namespace ostro::compile {
namespace {

using ir::Block;
using ir::Op;
using ir::ValueId;
using Marks = std::vector<char>;  // by value: is it read?

Marks marks(const Block& block) { return Marks(block.values.size(), 0); }

char& at(Marks& m, ValueId v) { return m[static_cast<size_t>(v)]; }

void clean(Block& block);

// What of `block` is needed for the results marked in `wanted` (by position).
Marks needed_for(const Block& block, const std::vector<char>& wanted) {
  Marks read = marks(block);
  for (size_t i = 0; i < block.results.size(); ++i)
    if (wanted[i] != 0) at(read, block.results[i]) = 1;
  for (size_t i = block.ops.size(); i-- > 0;) {
    const Op& op = block.ops[i];
    if (std::any_of(op.results.begin(), op.results.end(), [&](ValueId v) { return at(read, v) != 0; }) ||
        ir::is_collective(op.kind))
      for (ValueId v : op.operands) at(read, v) = 1;
  }
  return read;
}

template <typename T>
void keep_marked(std::vector<T>& items, const std::vector<char>& keep) {
  size_t n = 0;
  for (size_t i = 0; i < items.size(); ++i)
    if (keep[i] != 0) {
      if (n != i) items[n] = std::move(items[i]);
      ++n;
    }
  items.resize(n);
}

// Keeps of a scan the stacked results that are read, the carries that are needed, and the operands that its
// body then reads. A carry is needed when its final value is read, or when a needed op of the body reads it:
// the search repeats until no carry is added.
void clean_scan(Op& op, Marks& read) {
  Block& body = op.regions[0];
  const auto consts = static_cast<size_t>(op.attrs.i64("consts"));
  const auto carries = static_cast<size_t>(op.attrs.i64("carries"));
  std::vector<char> wanted(op.results.size());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = at(read, op.results[i]);
  Marks inside;
  for (bool grown = true; grown;) {
    grown = false;
    inside = needed_for(body, wanted);
    for (size_t i = 0; i < carries; ++i)
      if (wanted[i] == 0 && at(inside, body.params[consts + i]) != 0) {
        wanted[i] = 1;
        grown = true;
      }
  }
  std::vector<char> operands(op.operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool carry = i >= consts && i < consts + carries;
    operands[i] = carry ? wanted[i - consts] : at(inside, body.params[i]);
  }
  op.attrs.set("consts", static_cast<int64_t>(std::count(
                             operands.begin(), operands.begin() + static_cast<int64_t>(consts), 1)));
  op.attrs.set("carries", static_cast<int64_t>(
                              std::count(wanted.begin(), wanted.begin() + static_cast<int64_t>(carries), 1)));
  keep_marked(op.operands, operands);
  keep_marked(body.params, operands);
  keep_marked(op.results, wanted);
  keep_marked(body.results, wanted);
  clean(body);
}

// Both regions of a cond take the same operands: one is dropped when neither reads it.
void clean_cond(Op& op, Marks& read) {
  std::vector<char> wanted(op.results.size());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = at(read, op.results[i]);
  std::vector<char> operands(op.operands.size(), 0);
  operands[0] = 1;
  for (Block& region : op.regions) {
    const Marks inside = needed_for(region, wanted);
    for (size_t i = 0; i < region.params.size(); ++i)
      if (inside[static_cast<size_t>(region.params[i])] != 0) operands[i + 1] = 1;
  }
  keep_marked(op.operands, operands);
  keep_marked(op.results, wanted);
  operands.erase(operands.begin());
  for (Block& region : op.regions) {
    keep_marked(region.params, operands);
    keep_marked(region.results, wanted);
    clean(region);
  }
}

// Goes backwards, so that all readers of an op are known when it is reached: an op without a read result
// goes, and only the operands of ops that stay count as read. Scans and conds lose parts of their own on the
// way.
void clean(Block& block) {
  Marks read = marks(block);
  for (ValueId v : block.results) at(read, v) = 1;
  std::vector<char> keep(block.ops.size(), 0);
  for (size_t i = block.ops.size(); i-- > 0;) {
    Op& op = block.ops[i];
    // A collective always stays: all workers must take part in it, even those that do not use its result.
    const bool live = ir::is_collective(op.kind) || std::any_of(op.results.begin(), op.results.end(),
                                                                [&](ValueId v) { return at(read, v) != 0; });
    if (!live) continue;
    keep[i] = 1;
    if (op.kind == ir::OpKind::scan)
      clean_scan(op, read);
    else if (op.kind == ir::OpKind::cond)
      clean_cond(op, read);
    for (ValueId v : op.operands) at(read, v) = 1;
  }
  keep_marked(block.ops, keep);
}

}  // namespace

void remove_dead(ir::Program& program, const runtime::CompileOptions&) { clean(program.body); }

}  // namespace ostro::compile
