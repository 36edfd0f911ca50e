#include "ostro/train/workers/worker_plan.h"

#include <algorithm>
#include <numeric>

#include "ostro/base/test_fault.h"
#include "ostro/train/options/mesh.h"

namespace ostro::train {
namespace {

using spmd::Role;

bool carries_leaves(const std::string& mesh_axis) {
  return std::find(kLeafAxes.begin(), kLeafAxes.end(), mesh_axis) != kLeafAxes.end();
}

spmd::PartitionOptions options_for(const WorkerOptions& o, const ir::Program& program) {
  spmd::PartitionOptions options;
  options.sharding = o.sharding;
  options.cells = o.cells;
  options.leaf_axes = kLeafAxes;
  options.params.assign(program.body.params.size(), Role::kActivation);
  options.results.assign(program.body.results.size(), Role::kActivation);
  return options;
}

// (parameters, batch) -> (loss sum, weight, gradients, fingerprints)
Result<spmd::Partition> partition_leaf(const CanonicalPrograms& p, const WorkerOptions& o) {
  const auto n = static_cast<std::ptrdiff_t>(parameter_count(p));
  spmd::PartitionOptions options = options_for(o, p.leaf);
  std::fill_n(options.params.begin(), n, Role::kGradient);
  std::fill_n(options.results.begin() + 2, n, Role::kGradient);
  return spmd::partition(p.leaf, options);
}

// Neighbours in the order by host keep each other's cells, so far apart that they are on different hosts if
// no host has more than half of the workers.
std::vector<int64_t> holders_of(const std::vector<std::string>& hosts, int64_t workers) {
  std::vector<int64_t> order(static_cast<size_t>(workers)), out(order.size());
  std::iota(order.begin(), order.end(), 0);
  const auto host = [&](int64_t rank) { return hosts.empty() ? "" : hosts[static_cast<size_t>(rank)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return host(a) < host(b); });
  size_t most = 1;
  for (size_t i = 0, run = 0; i < order.size() && !hosts.empty(); ++i) {
    run = i > 0 && host(order[i]) == host(order[i - 1]) ? run + 1 : 1;
    most = std::max(most, run);
  }
  if (most >= order.size()) most = 1;  // one host
  for (size_t i = 0; i < order.size(); ++i)
    out[static_cast<size_t>(order[i])] = order[(i + most) % order.size()];
  return out;
}

}  // namespace

spmd::Placement placement_for(const CanonicalPrograms& programs, const WorkerOptions& options) {
  return {options.sharding, options.cells, programs.update.leaves, kLeafAxes};
}

std::vector<int64_t> WorkerPlan::leaf_peers(int64_t rank) const { return mesh().peers(rank, kLeafPeers); }

LeafRange WorkerPlan::range(int64_t leaves, int64_t rank) const {
  const std::vector<int64_t> peers = leaf_peers(rank);
  const auto at = std::find(peers.begin(), peers.end(), rank) - peers.begin();
  return leaf_range(leaves, static_cast<int64_t>(peers.size()), at);
}

spmd::Layout WorkerPlan::cut(size_t k) const {
  spmd::Layout layout = owned(k);
  for (spmd::Split& s : layout)
    if (!carries_leaves(s.mesh_axis)) s = {};
  return layout;
}

ir::Shape WorkerPlan::owned_shape(size_t k, int64_t rank) const {
  return spmd::local_shape(mesh(), rank, owned(k), shape(k));
}

ir::Shape WorkerPlan::used_shape(size_t k, int64_t rank) const {
  return spmd::local_shape(mesh(), rank, used(k), shape(k));
}

int64_t WorkerPlan::owned_bytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < n; ++k) bytes += owned_shape(k, rank).bytes();
  return bytes;
}

int64_t WorkerPlan::used_bytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < n; ++k) bytes += used_shape(k, rank).bytes();
  return bytes;
}

bool WorkerPlan::gathered(size_t k) const {
  const spmd::Layout layout = cut(k);
  return std::any_of(layout.begin(), layout.end(), [](const spmd::Split& s) { return s.split(); });
}

int64_t WorkerPlan::kept_for(int64_t rank) const {
  const auto at = std::find(holders.begin(), holders.end(), rank);
  return at == holders.end() ? -1 : at - holders.begin();
}

bool WorkerPlan::first_holder(size_t k, int64_t rank) const {
  for (const ir::Axis& axis : mesh().axes) {
    const bool splits = std::any_of(owned(k).begin(), owned(k).end(),
                                    [&](const spmd::Split& s) { return s.mesh_axis == axis.name; });
    if (!splits && spmd::coordinate(mesh(), rank, axis.name) != 0) return false;
  }
  return true;
}

Result<WorkerPlan> make_worker_plan(const CanonicalPrograms& programs, runtime::Engine& engine,
                                    const std::string& remat, const WorkerOptions& options) {
  WorkerPlan plan;
  plan.programs = programs;
  plan.engine = &engine;
  plan.remat = remat;
  plan.fault = options.fault;
  plan.n = parameter_count(programs);
  plan.rows = leaf_rows(programs);
  ASSIGN_OR_RETURN(plan.leaf, partition_leaf(programs, options));
  const UpdateParts parts = update_parts(programs);
  ASSIGN_OR_RETURN(plan.update, partition_update(parts, plan.n, options_for(options, parts.apply)));
  plan.state = make_state_layout(parameter_shapes(programs), placement_for(programs, options));
  const int64_t workers = plan.mesh().size();
  if (options.state_replicas > 0 && workers > 1)
    for (size_t k = 0; k < plan.n; ++k)
      if (plan.state.owned_once[k]) plan.mirrored.push_back(k);
  if (!plan.mirrored.empty()) plan.holders = holders_of(options.hosts, workers);
  for (const std::string& axis : kLeafAxes)
    for (size_t k = 0; k < plan.n; ++k) {
      const spmd::Layout& layout = plan.owned(k);
      if (std::none_of(layout.begin(), layout.end(),
                       [&](const spmd::Split& s) { return s.mesh_axis == axis; }))
        continue;
      plan.gather_axes += (plan.gather_axes.empty() ? "" : "*") + axis;
      break;
    }
  return plan;
}

WorkerFault planted_worker_fault() {
  return test_fault("leaf_order")   ? WorkerFault::kLeafOrder
         : test_fault("ring_order") ? WorkerFault::kRingOrder
                                    : WorkerFault::kNone;
}

}  // namespace ostro::train
