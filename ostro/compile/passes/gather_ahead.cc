// gather_ahead: moves the gathers of a loop's operands (the parameters of a layer) to the beginning of the
// loop's body.
//
// The engine starts these exchanges one after the other and waits for each only where it is used, so they
// overlap with the layer's own work. Their order among each other stays, so all workers start them in the
// same order.
#include "ostro/compile/passes/pass.h"

namespace ostro::compile {
namespace {

bool may_go_first(ir::OpKind kind) {
  return kind == ir::OpKind::all_gather || kind == ir::OpKind::cast || kind == ir::OpKind::use ||
         kind == ir::OpKind::rename;
}

// Forwards: marks values made from parameters by casts, uses, renames and gathers alone. Backwards: of these,
// the gathers and what they are made from go first. The others keep their places.
void gather_first_in(ir::Block& block) {
  std::vector<char> early(block.values.size(), 0);  // made from parameters by such ops alone
  for (const ir::ValueId v : block.params) early[static_cast<size_t>(v)] = 1;
  for (const ir::Op& op : block.ops)
    if (may_go_first(op.kind) && early[static_cast<size_t>(op.operands[0])] != 0)
      early[static_cast<size_t>(op.results[0])] = 1;
  std::vector<char> wanted(block.values.size(), 0);  // what a gather is made from
  std::vector<char> first(block.ops.size(), 0);
  for (size_t i = block.ops.size(); i-- > 0;) {
    const ir::Op& op = block.ops[i];
    if (op.results.empty() || early[static_cast<size_t>(op.results[0])] == 0) continue;
    if (op.kind != ir::OpKind::all_gather && wanted[static_cast<size_t>(op.results[0])] == 0) continue;
    first[i] = 1;
    wanted[static_cast<size_t>(op.operands[0])] = 1;
  }
  std::vector<ir::Op> ops;
  for (const char now : {1, 0})
    for (size_t i = 0; i < block.ops.size(); ++i)
      if (first[i] == now) ops.push_back(std::move(block.ops[i]));
  block.ops = std::move(ops);
}

void in_loops(ir::Block& block) {
  for (ir::Op& op : block.ops)
    for (ir::Block& region : op.regions) {
      in_loops(region);
      if (op.kind == ir::OpKind::scan) gather_first_in(region);
    }
}

}  // namespace

void gather_ahead(ir::Program& program, const runtime::CompileOptions&) { in_loops(program.body); }

}  // namespace ostro::compile
