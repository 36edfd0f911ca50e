#include "ostro/simulate/step/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ostro/fleet/workers/worker.h"
#include "ostro/spmd/layout.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"

namespace ostro::simulate {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The hosts that take part in a collective "all_gather over data, in leaves", by its name.
int64_t peers_of(const std::string& what, const ir::Mesh& mesh, int64_t rank) {
  const size_t over = what.find(" over "), end = what.find(", ", over);
  if (over == std::string::npos || end == std::string::npos) return mesh.size();
  constexpr size_t kOver = 6;
  return static_cast<int64_t>(mesh.peers(rank, what.substr(over + kOver, end - over - kOver)).size());
}

// A message of the exchanges that grow with the model is one host's part of one array.
int64_t part_bytes(const fleet::WorkerPlan& plan, int64_t rank) {
  const auto arrays = static_cast<int64_t>(std::max<size_t>(1, plan.trained));
  return std::max<int64_t>(1, plan.owned_bytes(rank) / arrays);
}

Traffic traffic_of(const train::Sent& sent, const fleet::WorkerPlan& plan, int64_t rank) {
  Traffic t{sent.bytes - sent.between, sent.between, 0, 1};
  const Traffic HostWork::* kind = kind_of_message(sent.what);
  if (kind == &HostWork::parameters || kind == &HostWork::gradients) {
    t.messages = (sent.bytes + part_bytes(plan, rank) - 1) / part_bytes(plan, rank);
    if (sent.what.find("copies") != std::string::npos) t.exchanges = sent.times;  // an array after another
    if (sent.between > 0 && sent.between < sent.bytes) t.exchanges = 2;
    return t;
  }
  if (sent.what == fleet::kWordOfNewCells) {  // a message in each round, and each round needs the one before
    t.messages = t.exchanges = sent.times;
    return t;
  }
  const bool collective = sent.what.find(" over ") != std::string::npos;
  if (collective) t.exchanges = sent.times;
  t.messages = t.exchanges * ((collective ? peers_of(sent.what, plan.leaf_mesh(), plan.leaf_rank(rank))
                                          : static_cast<int64_t>(plan.leaf_peers(rank).size())) -
                              1);
  return t;
}

// The sums that a host makes: those of its own leaves, whole, and those of the parts that it joins, for its
// slice and for all.
double adds_of(const StepPlan& out, const fleet::WorkerPlan& plan, int64_t rank, int64_t own,
               int64_t subtrees) {
  const auto peers = static_cast<double>(plan.leaf_peers(rank).size());
  if (out.layered) return static_cast<double>(own) * (1 - 1 / peers);  // in the leaf program
  const double whole = static_cast<double>(std::max<int64_t>(0, own - subtrees));
  if (!out.two_levels) {
    const double share = static_cast<double>(plan.owned_bytes(rank)) /
                         static_cast<double>(std::max<int64_t>(1, plan.used_bytes(rank)));
    return whole + std::max(0.0, static_cast<double>(subtrees) * peers - 1) * share;
  }
  const auto mates =
      static_cast<double>(out.slice_sizes[static_cast<size_t>(out.slice_of[static_cast<size_t>(rank)])]);
  return whole + std::max(0.0, static_cast<double>(subtrees) * mates - 1) / mates +
         static_cast<double>(out.slices - 1) / static_cast<double>(out.hosts);
}

HostWork work_of(const StepPlan& out, const fleet::WorkerPlan& plan, int64_t rank, int64_t leaves) {
  const train::WorkerLoad load = fleet::Worker(plan, rank).load(leaves);
  HostWork work;
  work.leaves = load.leaves;
  for (const train::Sent& sent : load.sent) work.*kind_of_message(sent.what) += traffic_of(sent, plan, rank);
  const std::vector<int64_t> own = plan.rows_of(rank).own_leaves(leaves);
  int64_t subtrees = 0;
  if (!own.empty() && !out.layered)
    subtrees = static_cast<int64_t>(train::subtrees(leaves, {own.front(), own.back() + 1}).size());
  work.adds = adds_of(out, plan, rank, load.leaves, subtrees);
  work.state = load.owned + load.copies;
  work.memory = load.held();
  work.sends = load.sent;
  return work;
}

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

}  // namespace

Traffic& Traffic::operator+=(const Traffic& other) {
  inside += other.inside;
  between += other.between;
  messages += other.messages;
  exchanges += other.exchanges;
  return *this;
}

Traffic HostWork::sent() const {
  Traffic all = parameters;
  for (const Traffic& t : {in_leaves, gradients, in_update}) all += t;
  return all;
}

Traffic StepPlan::sent() const {
  Traffic all;
  for (int64_t rank = 0; rank < hosts; ++rank) all += work(rank).sent();
  return all;
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

Traffic HostWork::* kind_of_message(const std::string& what) {
  if (ends_with(what, ", in leaves")) return &HostWork::in_leaves;
  if (what.rfind("parameters to ", 0) == 0) return &HostWork::parameters;
  if (ends_with(what, ", in the update") || what.rfind("losses ", 0) == 0 || what.rfind("word ", 0) == 0)
    return &HostWork::in_update;
  return &HostWork::gradients;
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
      out.kinds.push_back(work_of(out, plan, rank, out.leaves));
    } else {
      options.only = rank;
      ASSIGN_OR_RETURN(const fleet::WorkerPlan other,
                       fleet::make_worker_plan(model.programs, engine, model.remat, options));
      out.kinds.push_back(work_of(out, other, rank, out.leaves));
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
