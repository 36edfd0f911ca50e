// fuse_dot_cast: lets a dot give bf16 directly when a cast to bf16 is the only reader of its f32 result.
//
// No bit changes, because a dot with a bf16 result rounds once, after all trees (docs/spec/numerics.md, N1),
// as the cast does. Products of integers (N20) and cross_entropy_grad (N11), whose f32 result would be the
// largest array of a step, are treated alike.
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/passes/rewrite.h"

namespace ostro::compile {
namespace {

// Can the op give bf16 instead of f32 by a rounding at its end?
bool rounds_last(const ir::Block& block, const ir::Op& op) {
  if (op.kind == ir::OpKind::cross_entropy_grad || op.kind == ir::OpKind::dot_int8 ||
      op.kind == ir::OpKind::expert_dot_int8)
    return true;
  const bool dot = op.kind == ir::OpKind::dot || op.kind == ir::OpKind::expert_dot;
  return dot && block.shape(op.operands[0]).dtype == ir::DType::bf16;
}

void fuse(ir::Block& block) {
  const std::vector<int32_t> uses = use_counts(block);
  const std::vector<int32_t> def = definitions(block);
  std::vector<char> gone(block.ops.size(), 0);
  for (size_t i = 0; i < block.ops.size(); ++i) {
    ir::Op& op = block.ops[i];
    for (ir::Block& region : op.regions) fuse(region);
    if (op.kind != ir::OpKind::cast || op.attrs.str("dtype") != "bf16") continue;
    const ir::ValueId x = op.operands[0];
    const int32_t d = def[static_cast<size_t>(x)];
    if (d < 0 || uses[static_cast<size_t>(x)] != 1) continue;
    ir::Op& source = block.ops[static_cast<size_t>(d)];
    if (block.shape(x).dtype != ir::DType::f32 || !rounds_last(block, source)) continue;
    source.attrs.set("dtype", std::string("bf16"));
    source.results = op.results;
    gone[i] = 1;
  }
  size_t n = 0;
  for (size_t i = 0; i < block.ops.size(); ++i)
    if (gone[i] == 0) {
      if (n != i) block.ops[n] = std::move(block.ops[i]);
      ++n;
    }
  block.ops.resize(n);
}

}  // namespace

void fuse_dot_cast(ir::Program& program, const runtime::CompileOptions&) { fuse(program.body); }

}  // namespace ostro::compile
