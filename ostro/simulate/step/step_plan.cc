#include "ostro/simulate/step/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ostro/spmd/layout.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"

namespace ostro::simulate {
namespace {

// Of all hosts together: each is an event of a step. Of so many hosts that this leaves few chunks, neighbours
// are taken together.
constexpr int64_t kMostChunks = 65'536, kLeastChunks = 8;

// By rank: the number of the cells that it owns, of the array that is cut into the most parts.
std::vector<int64_t> cells_by_rank(const fleet::WorkerPlan& plan) {
  const auto cuts = [&](size_t k) {
    int64_t parts = 1;
    for (const spmd::Split& s : plan.owned(k))
      if (s.split()) parts *= plan.mesh().size_of(s.mesh_axis);
    return parts;
  };
  size_t most = 0;
  for (size_t k = 1; k < plan.n; ++k)
    if (cuts(k) > cuts(most)) most = k;
  std::map<fleet::Region, int64_t> numbers;
  std::vector<int64_t> out;
  for (int64_t rank = 0; rank < plan.mesh().size(); ++rank)
    out.push_back(
        numbers.emplace(plan.state.box(most, rank), static_cast<int64_t>(numbers.size())).first->second);
  return out;
}

// Leaves that are computed twice, as those workers draw them that compare leaves.
void add_checks(const fleet::WorkerPlan& plan, StepPlan& out) {
  if (!plan.options.check.on() || out.layered) return;
  out.check = plan.options.check;
  for (int64_t rank = 0; rank < out.hosts; ++rank) {
    const fleet::RowShare share = plan.rows_of(rank);
    out.place_of.push_back(share.place);
    out.sharers = share.workers;
  }
}

}  // namespace

Traffic StepPlan::sent() const {
  Traffic all;
  for (int64_t rank = 0; rank < hosts; ++rank) all += work(rank).sent();
  return all;
}

std::vector<int64_t> StepPlan::checked(int64_t step) const {
  std::vector<int64_t> by_place(static_cast<size_t>(sharers)), out;
  if (!check.on()) return std::vector<int64_t>(static_cast<size_t>(hosts));
  for (const fleet::CheckedLeaf& leaf : fleet::checked_leaves(check, step, leaves, sharers))
    ++by_place[static_cast<size_t>(leaf.by.second)];
  for (const int64_t place : place_of) out.push_back(by_place[static_cast<size_t>(place)]);
  return out;
}

int64_t StepPlan::parts() const { return *std::max_element(cells_of.begin(), cells_of.end()) + 1; }

int64_t StepPlan::idle() const {
  return std::count_if(kind_of.begin(), kind_of.end(), [&](size_t k) { return kinds[k].leaves == 0; });
}

int64_t StepPlan::most_leaves() const {
  int64_t most = 0;
  for (const HostWork& kind : kinds) most = std::max(most, kind.leaves);
  return most;
}

Result<RunModel> load_model(io::FileSystem& fs, const train::TrainConfig& config, int64_t vocab) {
  RunModel out;
  out.config = config;
  if (vocab < 0) return invalid_argument(fmt::format("--vocab: {}; use 1 or more", vocab));
  if (vocab == 0) {
    const auto tokenizer = train::open_tokenizer(fs, config);
    if (!tokenizer.ok())
      return tokenizer.error().with_context(
          "the number of tokens is that of the tokenizer; without one, say it with --vocab");
    vocab = (*tokenizer)->vocab_size();
  }
  RETURN_IF_ERROR(config.check_leaf_examples(0));
  const models::ModelFunctions model = train::run_model(config, vocab);
  ASSIGN_OR_RETURN(out.programs, train::make_programs(config, model));
  ASSIGN_OR_RETURN(out.remat, config.model_options().remat());
  int64_t rows = 0;
  for (const auto& stage : config.trainer.train_batch_size.stages) rows = std::max(rows, stage.value);
  out.leaves = rows / config.numerics.leaf_examples.value_or(rows);
  out.tokens = rows * config.example_positions();
  for (const ir::Shape& s : model.shapes) {
    out.parameters += s.count();
    out.parameter_bytes += s.count() * static_cast<int64_t>(sizeof(float));
  }
  for (const ir::Shape& s : train::state_arrays(out.programs).shapes) {
    ++out.arrays;
    out.state_bytes += s.bytes();
  }
  return out;
}

Result<StepPlan> plan_step(const RunModel& model, runtime::Engine& engine,
                           const std::vector<int64_t>& slice_sizes) {
  StepPlan out;
  out.slice_sizes = slice_sizes;
  out.slices = static_cast<int64_t>(slice_sizes.size());
  std::vector<std::string> names;
  for (size_t slice = 0; slice < slice_sizes.size(); ++slice)
    for (int64_t i = 0; i < slice_sizes[slice]; ++i) {
      names.push_back(std::to_string(slice));
      out.slice_of.push_back(static_cast<int64_t>(slice));
    }
  out.hosts = static_cast<int64_t>(names.size());
  out.leaves = model.leaves;
  if (out.slices == 1) names.clear();
  ASSIGN_OR_RETURN(fleet::WorkerOptions options, fleet::worker_options(model.config, out.hosts, names));
  const bool all = out.hosts <= kAllPlanned;
  if (!all) options.only = 0;
  ASSIGN_OR_RETURN(fleet::WorkerPlan plan,
                   fleet::make_worker_plan(model.programs, engine, model.remat, options));
  out.layered = options.exchange == train::ExchangeSchedule::kLayer;
  out.two_levels = plan.two_levels();
  out.overlaps = plan.overlaps();
  if (out.overlaps)
    out.chunks = joined_chunks(leaf_chunks(plan), std::max(kLeastChunks, kMostChunks / out.hosts));
  add_checks(plan, out);
  out.connections = model.config.trainer.sharding.mesh.slice_connections;
  out.holders = plan.holders;
  out.cells_of = cells_by_rank(plan);
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo leaf,
                   engine.estimate(plan.leaf_program(0), train::leaf_options(model.remat)));
  out.leaf_flops = leaf.flops;
  for (const ir::Op& op : plan.leaf_program(0).body.ops)
    if (op.kind == ir::OpKind::scan) out.layers = std::max(out.layers, op.attrs.i64("length"));
  // The kind of the hosts with so many leaves in a slice of so many hosts, which share what the slice sends.
  std::map<std::pair<int64_t, int64_t>, size_t> known_kinds;
  for (int64_t rank = 0; rank < out.hosts; ++rank) {
    const std::pair like{static_cast<int64_t>(plan.rows_of(rank).own_leaves(out.leaves).size()),
                         slice_sizes[static_cast<size_t>(out.slice_of[static_cast<size_t>(rank)])]};
    const auto known = known_kinds.find(like);
    if (!all && known != known_kinds.end() && rank + 1 < out.hosts) {
      out.kind_of.push_back(known->second);
      out.sampled = true;
      continue;
    }
    if (all || rank == 0) {
      out.kinds.push_back(work_of(out, plan, rank));
    } else {
      options.only = rank;
      ASSIGN_OR_RETURN(const fleet::WorkerPlan other,
                       fleet::make_worker_plan(model.programs, engine, model.remat, options));
      out.kinds.push_back(work_of(out, other, rank));
    }
    known_kinds.emplace(like, out.kinds.size() - 1);
    out.kind_of.push_back(out.kinds.size() - 1);
  }
  return out;
}

bool state_survives(const StepPlan& plan, const std::vector<bool>& lost) {
  std::set<int64_t> cells, kept;
  for (int64_t rank = 0; rank < plan.hosts; ++rank) {
    const auto at = static_cast<size_t>(rank);
    cells.insert(plan.cells_of[at]);
    if (!lost[at] || (!plan.holders.empty() && !lost[static_cast<size_t>(plan.holders[at])]))
      kept.insert(plan.cells_of[at]);
  }
  return cells == kept;
}

}  // namespace ostro::simulate
