// Memory and communication of a worker, computed from its plan before the first step.
#include <algorithm>

#include "ostro/ir/program/op_table.h"
#include "ostro/train/workers/worker.h"

namespace ostro::train {
namespace {

// What one run of a block sends to other workers: every collective sends its operand to each peer, and those
// whose shards may differ in size send the size before.
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

}  // namespace

size_t Worker::leaf_result_bytes() const {
  const size_t prints = plan_.programs.leaf.body.results.size() - 2 - plan_.n;
  return 2 * sizeof(double) + prints * sizeof(std::array<int64_t, 2>);
}

WorkerLoad Worker::load(int64_t leaves) const {
  WorkerLoad load;
  const LeafRange range = plan_.range(leaves, rank_);
  load.leaves = range.end - range.begin;
  const std::vector<Subtree> nodes = subtrees(leaves, range);
  int64_t finished = 0;
  for (const Subtree& node : nodes)
    load.partials = std::max(load.partials, finished++ + live_partials(node.count));
  load.parameter_bytes = plan_.used_bytes(rank_);
  load.owned_bytes = 3 * plan_.owned_bytes(rank_);
  const std::vector<int64_t> peers = plan_.leaf_peers(rank_);
  const auto others = static_cast<int64_t>(peers.size()) - 1;
  load.sent.results = others * load.leaves * static_cast<int64_t>(leaf_result_bytes());
  for (const int64_t peer : peers)
    if (peer != rank_) load.sent.gradients += static_cast<int64_t>(nodes.size()) * plan_.owned_bytes(peer);
  if (!plan_.gather_axes.empty()) {
    const auto receivers = static_cast<int64_t>(plan_.mesh().peers(rank_, plan_.gather_axes).size()) - 1;
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.gathered(k)) load.sent.parameters += receivers * plan_.owned_shape(k, rank_).bytes();
  }
  const auto rank = static_cast<size_t>(rank_);
  load.sent.leaf_programs = load.leaves * collective_bytes(plan_.leaf.programs[rank]->body, plan_.mesh());
  for (const spmd::Partition* part : {&plan_.update.measure, &plan_.update.prints})
    load.sent.update += collective_bytes(part->programs[rank]->body, plan_.mesh());
  if (!plan_.holders.empty())
    for (const size_t k : plan_.mirrored) load.sent.copies += plan_.owned_shape(k, rank_).bytes();
  return load;
}

}  // namespace ostro::train
