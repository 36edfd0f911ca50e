// Memory and communication of a worker, computed from its plan before the first step.
#include <algorithm>

#include "ostro/spmd/run_parts.h"
#include "ostro/train/workers/worker.h"

namespace ostro::train {

ir::Shape WorkerPlan::local_shape(size_t k, int64_t owner) const {
  return spmd::local_shape(update.mesh, owner, layout(k), shape(k));
}

int64_t WorkerPlan::local_bytes(int64_t owner) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < n; ++k) bytes += local_shape(k, owner).bytes();
  return bytes;
}

bool WorkerPlan::sends_parameter(size_t k, int64_t owner) const {
  for (const spmd::Split& s : layout(k))
    if (s.split()) return true;
  return owner == 0;
}

size_t Worker::leaf_result_bytes() const {
  const size_t prints = plan_.programs.leaf.body.results.size() - 2 - plan_.n;
  return 2 * sizeof(double) + prints * sizeof(std::array<int64_t, 2>);
}

WorkerLoad Worker::load(int64_t leaves) const {
  WorkerLoad load;
  const LeafRange range = leaf_range(leaves, plan_.workers, rank_);
  load.leaves = range.end - range.begin;
  const std::vector<Subtree> nodes = subtrees(leaves, range);
  int64_t finished = 0;
  for (const Subtree& node : nodes)
    load.partials = std::max(load.partials, finished++ + live_partials(node.count));
  for (size_t k = 0; k < plan_.n; ++k) load.parameter_bytes += plan_.shape(k).bytes();
  const int64_t others = plan_.workers - 1;
  load.sent_bytes = others * load.leaves * static_cast<int64_t>(leaf_result_bytes());
  for (int64_t o = 0; o < plan_.owners(); ++o)
    if (o != rank_) load.sent_bytes += static_cast<int64_t>(nodes.size()) * plan_.local_bytes(o);
  if (!owner()) return load;
  load.owned_bytes = 3 * plan_.local_bytes(rank_);
  const ir::Block& update = plan_.update.programs[static_cast<size_t>(rank_)]->body;
  for (const ir::Op& op : update.ops)
    if (ir::is_collective(op.kind))
      load.sent_bytes += (plan_.owners() - 1) * update.shape(op.operands[0]).bytes();
  for (size_t k = 0; k < plan_.n; ++k)
    if (plan_.sends_parameter(k, rank_)) load.sent_bytes += others * plan_.local_shape(k, rank_).bytes();
  return load;
}

}  // namespace ostro::train
