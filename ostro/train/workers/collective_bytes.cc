#include "ostro/train/workers/collective_bytes.h"

#include "ostro/ir/program/op_table.h"

namespace ostro::train {

int64_t collective_bytes(const ir::Block& block, const ir::Mesh& mesh) {
  int64_t bytes = 0;
  for (const ir::Op& op : block.ops) {
    int64_t runs = 1;
    if (op.kind == ir::OpKind::scan) runs = op.attrs.i64("length");
    for (const ir::Block& region : op.regions) bytes += runs * collective_bytes(region, mesh);
    if (ir::is_collective(op.kind) && op.attrs.has("mesh_axis") && op.kind != ir::OpKind::shard_slice)
      bytes += (mesh.size_of(op.attrs.str("mesh_axis")) - 1) *
               (block.shape(op.operands[0]).bytes() +
                (op.attrs.has("axis") ? static_cast<int64_t>(sizeof(int64_t)) : 0));
  }
  return bytes;
}

}  // namespace ostro::train
