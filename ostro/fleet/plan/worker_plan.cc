#include "ostro/fleet/plan/worker_plan.h"

#include <algorithm>
#include <numeric>

#include "ostro/ir/text/sub_program.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/options/split_beside.h"

namespace ostro::fleet {
namespace {

using spmd::Role;

spmd::PartitionOptions options_for(const WorkerOptions& o) {
  spmd::PartitionOptions options;
  options.sharding = o.sharding;
  options.cells = o.cells;
  options.leaf_axes = train::kLeafAxes;
  options.beside = train::kSplitBeside;
  options.only = o.only;
  return options;
}

// (parameters, batch) -> (loss sum, weight, gradients, fingerprints). With a round, the parameters are what
// the worker owns, and the gradients are the sums over the round of what it owns.
Result<spmd::Partition> partition_leaf(const train::CanonicalPrograms& p, const WorkerOptions& o,
                                       const std::optional<spmd::LeafExchange>& round) {
  const train::Signatures at = train::signatures_of(p);
  spmd::PartitionOptions options = options_for(o);
  options.params = roles_of(at.leaf_params, round ? Role::kParameter : Role::kGradient);
  options.results = roles_of(at.leaf_results, Role::kGradient);
  options.exchange = round;
  return spmd::partition(p.leaf, options);
}

// The options by which the leaf program is partitioned; `only`: for this worker alone.
WorkerOptions leaf_options(const WorkerPlan& plan, std::optional<int64_t> only) {
  WorkerOptions options = plan.options;
  options.sharding.mesh = plan.leaf_mesh();
  options.only = only ? std::optional(plan.leaf_rank(*only)) : std::nullopt;
  return options;
}

// The first round of the worker that the plan is for, or of worker 0. A slice that has no leaves in the
// largest step has none in any; its program is not run.
spmd::LeafExchange first_round(const WorkerPlan& plan) {
  const RowShare share = plan.rows_of(plan.options.only.value_or(0));
  const int64_t leaves = plan.options.leaves > 0 ? plan.options.leaves : share.workers;
  const int64_t workers = share.count > 0 ? share.count : share.workers;
  train::LeafRange range = share.dealt(leaves);
  if (range.begin == range.end) range = {0, leaves};
  return round_of(plan, leaves, {range.begin, std::min(range.end, range.begin + workers)});
}

bool splits_parameters_over_replica(const WorkerOptions& options) {
  return std::any_of(options.sharding.parameter.begin(), options.sharding.parameter.end(),
                     [](const auto& entry) { return entry.second == kReplicaAxis; });
}

// Neighbours in the order by name keep each other's cells, so far apart that they have different names if no
// name is that of more than half of the workers. Names: of hosts or of slices.
std::vector<int64_t> holders_by_name(const std::vector<std::string>& hosts, int64_t workers) {
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

// In another slice if there is one for each worker's copy; if one slice has more than half of the workers, on
// another host.
std::vector<int64_t> holders_of(const WorkerPlan& plan) {
  const int64_t workers = plan.mesh().size();
  if (plan.slices.several()) {
    std::vector<int64_t> out = holders_by_name(plan.options.slices, workers);
    bool apart = true;
    for (int64_t rank = 0; rank < workers; ++rank)
      apart = apart && plan.slices.apart(rank, out[static_cast<size_t>(rank)]);
    if (apart) return out;
  }
  return holders_by_name(plan.options.hosts, workers);
}

}  // namespace

spmd::Placement placement_for(const train::CanonicalPrograms& programs, const WorkerOptions& options) {
  return {options.sharding, options.cells, programs.update.leaves, train::kLeafAxes, train::kSplitBeside};
}

std::vector<int64_t> WorkerPlan::slices_of_sharers() const {
  std::vector<int64_t> out;
  for (const int64_t peer : leaf_peers(0)) out.push_back(slices.of(peer));
  return out;
}

int64_t WorkerPlan::sharers() const {
  int64_t count = 1;
  for (const std::string& axis : train::kLeafAxes) count *= mesh().size_of(axis);
  return count;
}

RowShare WorkerPlan::rows_of(int64_t rank) const {
  const std::vector<int64_t> peers = leaf_peers(rank);
  RowShare share{rows, static_cast<int64_t>(peers.size()),
                 std::find(peers.begin(), peers.end(), rank) - peers.begin(),
                 options.exchange == train::ExchangeSchedule::kLayer};
  share.check = options.check;
  share.shares = shares;
  if (!rounds_in_slices()) return share;
  const auto near = [&](int64_t peer) { return !slices.apart(peer, rank); };
  share.first = std::find_if(peers.begin(), peers.end(), near) - peers.begin();
  share.count = std::count_if(peers.begin(), peers.end(), near);
  return share;
}

ir::Shape WorkerPlan::owned_shape(size_t k, int64_t rank) const {
  return spmd::local_shape(mesh(), rank, owned(k), shape(k));
}

ir::Shape WorkerPlan::used_shape(size_t k, int64_t rank) const {
  return spmd::local_shape(mesh(), rank, used(k), shape(k));
}

int64_t WorkerPlan::owned_bytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < trained; ++k) bytes += owned_shape(k, rank).bytes();
  return bytes;
}

int64_t WorkerPlan::state_bytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < arrays.size(); ++k) bytes += owned_shape(k, rank).bytes();
  return bytes;
}

int64_t WorkerPlan::mirrored_gradients() const {
  return std::count_if(mirrored.begin(), mirrored.end(), [this](size_t k) { return k < trained; });
}

std::optional<size_t> WorkerPlan::mirrored_place(size_t k) const {
  const auto at = std::lower_bound(mirrored.begin(), mirrored.end(), k);
  if (at == mirrored.end() || *at != k) return std::nullopt;
  return static_cast<size_t>(at - mirrored.begin());
}

int64_t WorkerPlan::used_bytes(int64_t rank) const {
  int64_t bytes = 0;
  for (size_t k = 0; k < trained; ++k) bytes += used_shape(k, rank).bytes();
  return bytes;
}

bool WorkerPlan::gathered(size_t k) const {
  return std::any_of(cut(k).begin(), cut(k).end(), [](const spmd::Split& s) { return s.split(); });
}

std::optional<int64_t> WorkerPlan::mirror_of(int64_t rank) const {
  const auto holder = std::find(holders.begin(), holders.end(), rank);
  return holder == holders.end() ? std::optional<int64_t>() : holder - holders.begin();
}

bool WorkerPlan::first_holder(size_t k, int64_t rank) const {
  for (const ir::Axis& axis : mesh().axes) {
    const bool splits = std::any_of(owned(k).begin(), owned(k).end(),
                                    [&](const spmd::Split& s) { return s.mesh_axis == axis.name; });
    if (!splits && spmd::coordinate(mesh(), rank, axis.name) != 0) return false;
  }
  return true;
}

Result<WorkerPlan> make_worker_plan(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                    const std::string& remat, const WorkerOptions& options) {
  WorkerPlan plan;
  plan.programs = programs;
  plan.engine = &engine;
  plan.remat = remat;
  plan.options = options;
  ASSIGN_OR_RETURN(plan.at, train::check_signatures(programs));
  plan.n = plan.at.model.paths.size();
  plan.trained = plan.at.trained();
  plan.arrays = train::state_arrays(programs);
  plan.rows = train::leaf_rows(programs);
  plan.shares = options.shares;
  plan.slices = Slices(options.slices, options.sharding.mesh.size());
  plan.options.check.machines = machines_of(options.hosts, plan.leaf_peers(0));
  std::optional<spmd::LeafExchange> round;
  if (options.exchange == train::ExchangeSchedule::kLayer) {
    if (!splits_parameters_over_replica(options)) plan.slice_mesh = replica_slices(plan.mesh(), plan.slices);
    round = plan.first_round = first_round(plan);
  }
  auto leaf = partition_leaf(programs, leaf_options(plan, options.only), round);
  if (!leaf.ok()) return round ? leaf.error().with_context("trainer.mesh.exchange: layer") : leaf.error();
  plan.leaf = std::move(leaf).value();
  ASSIGN_OR_RETURN(plan.update, partition_update(update_parts(programs), options_for(options)));
  plan.state = make_state_layout(plan.arrays, placement_for(programs, options));
  const int64_t workers = plan.mesh().size();
  if (options.state_replicas > 0 && workers > 1)
    for (size_t k = 0; k < plan.arrays.size(); ++k)
      if (plan.state.owned_once[k]) plan.mirrored.push_back(k);
  if (!plan.mirrored.empty()) plan.holders = holders_of(plan);
  for (size_t k = 0; k < plan.n; ++k) {
    plan.cuts.push_back(plan.owned(k));
    for (spmd::Split& s : plan.cuts.back())
      if (!s.over(train::kLeafAxes)) s = {};
  }
  for (const std::string& axis : train::kLeafAxes)
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

ShareKeeper share_keeper(const WorkerPlan& plan, const std::vector<double>& seconds) {
  return {plan.slices_of_sharers(), seconds, plan.shares, plan.options.slice_partials > 0};
}

std::vector<train::Subtree> round_subtrees(const WorkerPlan& plan, int64_t leaves, train::LeafRange range) {
  return train::subtrees_in_groups(leaves, plan.options.slice_partials, range);
}

spmd::LeafExchange round_of(const WorkerPlan& plan, int64_t leaves, train::LeafRange range) {
  spmd::LeafExchange round;
  for (const train::Subtree& node : round_subtrees(plan, leaves, range)) {
    round.firsts.push_back(node.first - range.begin);
    round.counts.push_back(node.count);
  }
  return round;
}

Result<std::shared_ptr<const ir::Program>> round_program(const WorkerPlan& plan,
                                                         const spmd::LeafExchange& round, int64_t rank) {
  ASSIGN_OR_RETURN(const spmd::Partition made,
                   partition_leaf(plan.programs, leaf_options(plan, rank), round));
  return made.programs[static_cast<size_t>(plan.leaf_rank(rank))];
}

Result<ir::Program> mirrored_apply(const WorkerPlan& plan, int64_t rank) {
  WorkerOptions options = plan.options;
  options.only = rank;
  ASSIGN_OR_RETURN(const UpdatePartitions made,
                   partition_update(update_parts(plan.programs), options_for(options)));
  const ir::Program& whole = *made.apply.programs[static_cast<size_t>(rank)];
  const auto in = train::read_fields(made.apply_params, whole.body.params);
  const auto out = train::read_fields(made.applied, whole.body.results);
  ApplyParams<ir::ValueId> some = in;
  some.params.clear(), some.optimizer.clear(), some.gradients.clear();
  ApplyResults<ir::ValueId> results;
  for (const size_t k : plan.mirrored) {
    train::list_of(some, k, plan.n).push_back(train::array_of(in, k));
    train::list_of(results, k, plan.n).push_back(train::array_of(out, k));
    if (k < plan.trained) some.gradients.push_back(in.gradients[k]);
  }
  return ir::sub_program(whole, "apply_mirrored", train::as_list(some), train::as_list(results));
}

}  // namespace ostro::fleet
