#include "ostro/train/workers/collective_bytes.h"

#include <algorithm>

#include "ostro/ir/rules/collective_parts.h"

namespace ostro::train {

int64_t collective_bytes(const ir::Block& block, const ir::Mesh& mesh, int64_t rank) {
  int64_t bytes = 0;
  for (const ir::Op& op : block.ops) {
    int64_t runs = 1;
    if (op.kind == ir::OpKind::scan) runs = op.attrs.i64("length");
    for (const ir::Block& region : op.regions) bytes += runs * collective_bytes(region, mesh, rank);
    if (!ir::is_collective(op.kind)) continue;
    const std::vector<int64_t> peers =
        mesh.peers(rank, op.attrs.str(op.kind == ir::OpKind::exchange_leaves ? "mesh_axes" : "mesh_axis"));
    const auto place = std::find(peers.begin(), peers.end(), rank) - peers.begin();
    bytes += ir::sent_bytes(op, block.shape(op.operands[0]), place);
  }
  return bytes;
}

}  // namespace ostro::train
