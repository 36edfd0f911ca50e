#include "ostro/ir/text/canonical_order.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace ostro::ir {
namespace {

// Positions in block.params, in the order of first use.
using FirstUses = std::vector<size_t>;

FirstUses order_block(Block& block);

template <typename T>
std::vector<T> picked(const std::vector<T>& from, const std::vector<size_t>& at) {
  std::vector<T> out;
  for (size_t i : at) out.push_back(from[i]);
  return out;
}

std::vector<size_t> range(size_t begin, size_t end) {
  std::vector<size_t> out;
  for (size_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

void append(std::vector<size_t>& to, const std::vector<size_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void order_scan(Op& op) {
  Block& body = op.regions[0];
  const auto consts = static_cast<size_t>(op.attrs.i64("consts"));
  std::vector<size_t> keep;
  for (size_t i : order_block(body))
    if (i < consts) keep.push_back(i);
  op.attrs.set("consts", static_cast<int64_t>(keep.size()));
  append(keep, range(consts, body.params.size()));
  body.params = picked(body.params, keep);
  op.operands = picked(op.operands, keep);
}

// Operand 0 is the predicate; the others are the parameters of every branch.
void order_cond(Op& op) {
  std::vector<size_t> keep;
  for (Block& branch : op.regions)
    for (size_t i : order_block(branch))
      if (std::find(keep.begin(), keep.end(), i) == keep.end()) keep.push_back(i);
  for (Block& branch : op.regions) branch.params = picked(branch.params, keep);
  std::vector<size_t> operands{0};
  for (size_t i : keep) operands.push_back(i + 1);
  op.operands = picked(op.operands, operands);
}

void order_regions(Op& op) {
  if (op.kind == OpKind::scan) return order_scan(op);
  if (op.kind == OpKind::cond) return order_cond(op);
  for (Block& region : op.regions) order_block(region);
}

// Orders the ops from `first_op` on; those before are not moved. The cost grows with the number of ordered
// ops, not with the size of the block.
class Walk {
 public:
  Walk(Block& block, size_t first_op)
      : block_(block), first_op_(first_op), seen_op_(block.ops.size() - first_op) {
    if (first_op == 0)
      for (size_t i = 0; i < block.params.size(); ++i) source_[block.params[i]] = {true, i};
    for (size_t i = first_op; i < block.ops.size(); ++i)
      for (ValueId v : block.ops[i].results) source_[v] = {false, i};
    seen_param_.resize(block.params.size());
  }

  FirstUses run(const std::vector<ValueId>& roots) && {
    for (ValueId v : roots) visit(v);
    block_.ops.resize(first_op_);
    block_.ops.insert(block_.ops.end(), std::make_move_iterator(ordered_.begin()),
                      std::make_move_iterator(ordered_.end()));
    return std::move(first_uses_);
  }

 private:
  struct Source {
    bool is_param = false;
    size_t index = 0;  // in block.params or block.ops
  };
  struct Open {
    size_t op;
    size_t next_operand = 0;
  };

  // Uses an explicit stack instead of recursion: a chain of ops may be too long for the thread's stack.
  void visit(ValueId root) {
    enter(root);
    while (!open_.empty()) {
      Open& top = open_.back();
      Op& op = block_.ops[top.op];
      if (top.next_operand < op.operands.size()) {
        enter(op.operands[top.next_operand++]);
      } else {
        ordered_.push_back(std::move(op));
        open_.pop_back();
      }
    }
  }

  void enter(ValueId v) {
    const auto source = source_.find(v);
    if (source == source_.end()) return;  // made before first_op
    const auto [is_param, index] = source->second;
    std::vector<bool>::reference seen = is_param ? seen_param_[index] : seen_op_[index - first_op_];
    if (seen) return;
    seen = true;
    if (is_param) {
      first_uses_.push_back(index);
    } else {
      order_regions(block_.ops[index]);  // decides the order of the op's operands
      open_.push_back({index});
    }
  }

  Block& block_;
  size_t first_op_;
  std::unordered_map<ValueId, Source> source_;
  std::vector<bool> seen_op_, seen_param_;
  std::vector<Open> open_;
  std::vector<Op> ordered_;
  FirstUses first_uses_;
};

FirstUses order_block(Block& block) { return Walk(block, 0).run(block.results); }

}  // namespace

void canonical_order(Block& block) { order_block(block); }

void canonical_order(Block& block, size_t first_op, const std::vector<ValueId>& roots) {
  Walk(block, first_op).run(roots);
}

}  // namespace ostro::ir
