// gather_first: turns gather(cast(table)) into cast(gather(table)) when the gather is the only reader of the
// cast table.
//
// A step looks up a few thousand rows of an embedding and need not cast all of them. Each element is cast as
// before, and the +0 that an index outside the table gives stays +0.
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/passes/rewrite.h"

namespace ostro::compile {
namespace {

bool is_float(const ir::Shape& s) { return s.dtype == ir::DType::f32 || s.dtype == ir::DType::bf16; }

// The gather reads the table from before the cast and gives a new value; the cast moves behind it and makes
// the gather's old result, so no reader changes. Only where the cast then has fewer elements.
void gather_rows_first(ir::Block& block) {
  const std::vector<int32_t> uses = use_counts(block);
  const std::vector<int32_t> def = definitions(block);
  std::vector<ir::Op> ops;
  std::vector<char> gone(block.ops.size(), 0);
  std::vector<std::vector<ir::Op>> behind(block.ops.size());
  for (size_t i = 0; i < block.ops.size(); ++i) {
    ir::Op& op = block.ops[i];
    for (ir::Block& region : op.regions) gather_rows_first(region);
    if (op.kind != ir::OpKind::gather) continue;
    const ir::ValueId table = op.operands[0];
    const int32_t d = def[static_cast<size_t>(table)];
    if (d < 0 || uses[static_cast<size_t>(table)] != 1) continue;
    ir::Op cast = block.ops[static_cast<size_t>(d)];
    if (cast.kind != ir::OpKind::cast && cast.kind != ir::OpKind::use) continue;
    if (!is_float(block.shape(cast.operands[0])) || !is_float(block.shape(table)) ||
        block.shape(op.results[0]).count() >= block.shape(table).count())
      continue;
    op.operands[0] = cast.operands[0];
    cast.results = op.results;
    op.results = {
        block.add_value(block.shape(op.results[0]).with_dtype(block.shape(cast.operands[0]).dtype))};
    cast.operands = op.results;
    behind[i].push_back(std::move(cast));
    gone[static_cast<size_t>(d)] = 1;
  }
  for (size_t i = 0; i < block.ops.size(); ++i) {
    if (gone[i] == 0) ops.push_back(std::move(block.ops[i]));
    for (ir::Op& op : behind[i]) ops.push_back(std::move(op));
  }
  block.ops = std::move(ops);
}

}  // namespace

void gather_first(ir::Program& program, const runtime::CompileOptions&) { gather_rows_first(program.body); }

}  // namespace ostro::compile
