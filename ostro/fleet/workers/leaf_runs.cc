#include "ostro/fleet/workers/leaf_runs.h"

#include <algorithm>

#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/exchange/gather_all.h"
#include "ostro/fleet/exchange/messages.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

size_t prints_of(const WorkerPlan& plan) { return plan.at.leaf_results.fingerprints.size(); }

size_t measures_of(const WorkerPlan& plan) { return plan.at.leaf_results.measures.size(); }

}  // namespace

train::BatchArrays leaf_batch(const WorkerPlan& plan, int64_t rank, const train::BatchArrays& batch,
                              int64_t leaf) {
  train::BatchArrays rows = train::rows_of(batch, leaf * plan.rows, plan.rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const spmd::Layout& layout = plan.leaf.params[plan.at.leaf_params.batch[i]];
    if (std::any_of(layout.begin(), layout.end(), [](const spmd::Split& s) { return s.split(); }))
      rows[i] = spmd::shard(plan.mesh(), rank, layout, rows[i]);
  }
  return rows;
}

int64_t leaf_result_bytes(const WorkerPlan& plan) {
  return static_cast<int64_t>((2 + measures_of(plan)) * sizeof(double) +
                              prints_of(plan) * sizeof(std::array<int64_t, 2>));
}

Result<std::vector<train::LeafResult>> share_leaf_results(const WorkerPlan& plan, runtime::Collectives& c,
                                                          const std::vector<int64_t>& peers,
                                                          const LeavesOf& leaves_of,
                                                          const LeafOutputs& outputs,
                                                          const SliceExchange* slices, LeafTimes* times) {
  std::vector<train::LeafResult> results(outputs.size());
  Bytes mine;
  std::vector<size_t> expected;
  for (size_t w = 0; w < peers.size(); ++w) {
    const std::vector<int64_t> leaves = leaves_of(w);
    expected.push_back(leaves.size() * static_cast<size_t>(leaf_result_bytes(plan)) +
                       (times != nullptr ? sizeof(double) : 0));
    if (peers[w] != c.rank()) continue;
    if (times != nullptr) append_value(mine, times->own);
    for (const int64_t i : leaves) {
      ASSIGN_OR_RETURN(const train::LeafResult r, train::leaf_result(outputs[static_cast<size_t>(i)]));
      append_value(mine, r.loss_sum);
      append_value(mine, r.weight);
      for (const auto& print : r.gradient_prints) append_value(mine, print);
      for (const double sum : r.measures) append_value(mine, sum);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, slices != nullptr ? slices->spread(c, mine, expected)
                                                      : in_rounds(peers.size(), c.size())
                                                          ? gather_all(c, mine, expected)
                                                          : exchange(c, peers, mine, expected));
  for (size_t w = 0; w < peers.size(); ++w) {
    Reader reader(received[w]);
    if (times != nullptr) times->all.push_back(reader.value<double>());
    for (const int64_t i : leaves_of(w)) {
      train::LeafResult r;
      r.loss_sum = reader.value<double>();
      r.weight = reader.value<double>();
      for (size_t k = 0; k < prints_of(plan); ++k)
        r.gradient_prints.push_back(reader.value<std::array<int64_t, 2>>());
      for (size_t k = 0; k < measures_of(plan); ++k) r.measures.push_back(reader.value<double>());
      results[static_cast<size_t>(i)] = std::move(r);
    }
  }
  return results;
}

void add_leaf_results(const WorkerPlan& plan, int64_t rank, int64_t leaves, const SliceExchange* slices,
                      train::WorkerLoad& load) {
  const std::string what = kResultsOfLeaves;
  const int64_t time = plan.options.measured_shares ? static_cast<int64_t>(sizeof(double)) : 0;
  const int64_t mine = load.leaves * leaf_result_bytes(plan) + time;
  std::vector<int64_t> sizes;
  int64_t between = 0;
  for (const int64_t peer : plan.leaf_peers(rank)) {
    const auto own = static_cast<int64_t>(plan.rows_of(peer).own_leaves(leaves).size());
    sizes.push_back(own * leaf_result_bytes(plan) + time);
    between += plan.slices.apart(rank, peer) ? mine : 0;
  }
  if (slices != nullptr) return slices->add_spread(sizes, what, load);
  if (in_rounds(sizes.size(), plan.mesh().size()))
    return add_gathered(sizes, plan.slices, rank, what, load.sent);
  const auto others = static_cast<int64_t>(sizes.size()) - 1;
  add_sent(load.sent, what, 1, others * mine, between);
}

std::unique_ptr<SliceExchange> make_slice_exchange(const WorkerPlan& plan, int64_t rank) {
  return plan.two_levels() ? std::make_unique<SliceExchange>(plan, rank) : nullptr;
}

}  // namespace ostro::fleet
