#include "ostro/simulate/step/host_work.h"

#include <algorithm>

#include "ostro/fleet/workers/leaf_runs.h"
#include "ostro/fleet/workers/worker.h"
#include "ostro/simulate/step/step_plan.h"
#include "ostro/train/step/batches.h"

namespace ostro::simulate {
namespace {

// The hosts that take part in a collective "all_gather over data, in leaves", by its name.
int64_t peers_of(const std::string& what, const ir::Mesh& mesh, int64_t rank) {
  const size_t over = what.find(" over "), end = what.find(", ", over);
  if (over == std::string::npos || end == std::string::npos) return mesh.size();
  constexpr size_t kOver = 6;
  return static_cast<int64_t>(mesh.peers(rank, what.substr(over + kOver, end - over - kOver)).size());
}

// A message of the exchanges that grow with the model is one host's part of one array or, beside the leaves,
// of one layer of it.
int64_t part_bytes(const StepPlan& step, const fleet::WorkerPlan& plan, int64_t rank,
                   const Traffic HostWork::* kind) {
  auto pieces = static_cast<int64_t>(plan.trained);
  if (step.overlaps && kind == &HostWork::parameters) pieces = step.chunks.read_pieces;
  if (step.overlaps && kind == &HostWork::gradients) pieces = step.chunks.made_pieces;
  return std::max<int64_t>(1, plan.owned_bytes(rank) / std::max<int64_t>(1, pieces));
}

Traffic traffic_of(const StepPlan& step, const train::Sent& sent, const fleet::WorkerPlan& plan,
                   int64_t rank) {
  Traffic t{sent.bytes - sent.between, sent.between, 0, 1};
  const Traffic HostWork::* kind = kind_of_message(sent.what);
  if (kind == &HostWork::parameters || kind == &HostWork::gradients || kind == &HostWork::joined) {
    const int64_t part = part_bytes(step, plan, rank, kind);
    t.messages = (sent.bytes + part - 1) / part;
    if (sent.what.find("copies") != std::string::npos) t.exchanges = sent.times;  // an array after another
    if (sent.between > 0 && sent.between < sent.bytes) t.exchanges = 2;
    return t;
  }
  // A message in each round, and each round needs the one before.
  if (sent.what == fleet::kWordOfNewCells || (sent.what == fleet::kResultsOfLeaves && sent.times > 1)) {
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
Sums adds_of(const StepPlan& step, const fleet::WorkerPlan& plan, int64_t rank, int64_t leaves,
             const std::vector<int64_t>& own) {
  Sums out;
  const auto peers = static_cast<double>(plan.leaf_peers(rank).size());
  if (step.layered) {  // in the leaf program
    out.leaves = static_cast<double>(leaves) * (1 - 1 / peers);
    return out;
  }
  const auto subtrees_of = [&](size_t count) -> int64_t {
    if (count == 0) return 0;
    return std::ssize(train::subtrees(step.leaves, {own.front(), own[count - 1] + 1}));
  };
  const int64_t subtrees = subtrees_of(own.size());
  if (!own.empty()) {
    const int64_t before = subtrees_of(own.size() - 1);
    out.leaves = static_cast<double>(std::ssize(own) - 1 - before);
    out.last = static_cast<double>(before + 1 - subtrees);
  }
  if (!step.two_levels) {
    const double share = static_cast<double>(plan.owned_bytes(rank)) /
                         static_cast<double>(std::max<int64_t>(1, plan.used_bytes(rank)));
    out.slice = std::max(0.0, static_cast<double>(subtrees) * peers - 1) * share;
    return out;
  }
  const auto mates =
      static_cast<double>(step.slice_sizes[static_cast<size_t>(step.slice_of[static_cast<size_t>(rank)])]);
  out.slice = std::max(0.0, static_cast<double>(subtrees) * mates - 1) / mates;
  out.all = static_cast<double>(step.slices - 1) / static_cast<double>(step.hosts);
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
  for (const Traffic& t : {in_leaves, gradients, joined, in_update}) all += t;
  return all;
}

HostWork work_of(const StepPlan& step, const fleet::WorkerPlan& plan, int64_t rank) {
  const train::WorkerLoad load = fleet::Worker(plan, rank).load(step.leaves);
  HostWork work;
  work.leaves = load.leaves;
  for (const train::Sent& sent : load.sent)
    work.*kind_of_message(sent.what) += traffic_of(step, sent, plan, rank);
  work.adds = adds_of(step, plan, rank, load.leaves, plan.rows_of(rank).own_leaves(step.leaves));
  work.state = load.owned + load.copies;
  work.memory = load.held();
  work.sends = load.sent;
  return work;
}

Traffic HostWork::* kind_of_message(const std::string& what) {
  if (what.ends_with(", in leaves")) return &HostWork::in_leaves;
  if (what.starts_with("parameters to ")) return &HostWork::parameters;
  if (what.ends_with(", in the update") || what.starts_with("losses ") || what.starts_with("word "))
    return &HostWork::in_update;
  if (what.starts_with("sums of gradients to ")) return &HostWork::gradients;
  return &HostWork::joined;
}

}  // namespace ostro::simulate
