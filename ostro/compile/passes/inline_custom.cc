// inline_custom: replaces a custom op by its function (region 0). Its derivative is not needed any more:
// differentiation comes before the passes.
#include "ostro/compile/passes/pass.h"
#include "ostro/ir/program/builder.h"

namespace ostro::compile {
namespace {

using ir::Block;
using ir::Op;
using ir::ValueId;

bool has_custom(const Block& block) {
  for (const Op& op : block.ops) {
    if (op.kind == ir::OpKind::custom) return true;
    for (const Block& region : op.regions)
      if (has_custom(region)) return true;
  }
  return false;
}

// Copies the ops to a new block; in the place of a custom op come the ops of its function, whose own custom
// ops were replaced before. Later readers are renamed to the function's results.
void inline_block_customs(Block& block) {
  if (!has_custom(block)) return;
  Block out;
  out.values = block.values;
  out.params = block.params;
  // The value that stands for each value now: the results of a custom op are those of its function.
  std::vector<ValueId> now(block.values.size());
  for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<ValueId>(i);
  const auto rename = [&](std::vector<ValueId>& values) {
    for (ValueId& v : values) v = now[static_cast<size_t>(v)];
  };
  for (Op& op : block.ops) {
    rename(op.operands);
    if (op.kind != ir::OpKind::custom) {
      for (Block& region : op.regions) inline_block_customs(region);
      out.ops.push_back(std::move(op));
      continue;
    }
    inline_block_customs(op.regions[0]);
    ir::Builder builder(out);
    const std::vector<ValueId> results = ir::inline_block(builder, op.regions[0], op.operands);
    for (size_t i = 0; i < results.size(); ++i) now[static_cast<size_t>(op.results[i])] = results[i];
  }
  out.results = block.results;
  rename(out.results);
  block = std::move(out);
}

}  // namespace

void inline_custom(ir::Program& program, const runtime::CompileOptions&) {
  inline_block_customs(program.body);
}

}  // namespace ostro::compile
