// exchange: step. A worker runs consecutive leaves, adds up the gradients of the largest subtrees that lie in
// its range, and sends every owner its cells of these sums, once a step. It holds whole gradients, and the
// whole parameters from the first leaf to the last.
#include <algorithm>
#include <numeric>

#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/base/watch/slow_leaf.h"
#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/workers/cell_exchange.h"
#include "ostro/fleet/workers/gradient_schedule.h"
#include "ostro/fleet/workers/leaf_checks.h"
#include "ostro/fleet/workers/leaf_runs.h"
#include "ostro/fleet/workers/parameter_checks.h"
#include "ostro/fleet/workers/slice_overlap.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

class StepSchedule final : public GradientSchedule {
 public:
  StepSchedule(const WorkerPlan& plan, int64_t rank)
      : plan_(plan),
        rank_(rank),
        peers_(plan.leaf_peers(rank)),
        place_(static_cast<size_t>(std::find(peers_.begin(), peers_.end(), rank) - peers_.begin())),
        slices_(make_slice_exchange(plan, rank)),
        add_whole_(*plan.engine),
        add_owned_(*plan.engine),
        add_chunks_(*plan.engine, false) {
    if (plan.overlaps()) chunks_.emplace(plan);
  }

  Result<Buffers> gradients(runtime::Collectives& c, const Buffers& owned, const Buffers& copies,
                            const train::BatchArrays& batch, std::vector<train::LeafResult>& results,
                            StepChecks& checks) override {
    times_ = LeafTimes();
    if (chunks_) return overlapped(c, owned, copies, batch, results, checks);
    if (params_.empty()) {
      phase("gather parameters");
      ASSIGN_OR_RETURN(
          params_, slices_ != nullptr ? slices_->gather(c, owned, copies) : gather_cells(plan_, c, owned));
    }
    const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
    SubtreeSums sums(leaves, plan_.options.slice_partials, add_whole_);
    LeafChecks twice(plan_, peers_, rank_, checks.step, leaves);
    ASSIGN_OR_RETURN(LeafRuns ran, run_leaves(c, params_, batch, leaves, sums, twice, nullptr));
    RETURN_IF_ERROR(compare(c, {owned, copies, params_}, batch, twice, checks));
    ASSIGN_OR_RETURN(results, share_results(c, leaves, ran.outputs));
    return exchange_gradients(c, leaves, sums);
  }

  void reset() override { params_.clear(); }

  int64_t own_leaves(int64_t leaves) const override { return count(range(leaves, place_)); }

  void add_load(int64_t leaves, train::WorkerLoad& load) const override {
    load.leaves = own_leaves(leaves);
    int64_t finished = 0;
    for (const train::Subtree& node : train::subtrees(leaves, range(leaves, place_)))
      load.partials = std::max(load.partials, finished++ + train::live_partials(node.count));
    // Shares may change: memory is for the largest.
    const bool changes = plan_.options.measured_shares && peers_.size() > 1;
    if (changes) load.partials = std::max(load.partials, most_partials(leaves));
    // A leaf of another worker is computed again beside the sums of this one.
    if (plan_.options.check.on()) load.partials = std::max(load.partials, finished + 1);
    load.gradients = load.partials * plan_.used_bytes(rank_);  // while leaves run
    // The last leaf is added to the sums before it, or rounded, chunk by chunk, while all of it is there.
    if (chunks_ && ((changes ? leaves : load.leaves) > 1 || plan_.options.slice_partials > 0))
      load.gradients += plan_.used_bytes(rank_);
    add_leaf_results(plan_, rank_, leaves, slices_.get(), load);
    if (slices_ != nullptr) {
      slices_->add_joins(leaves, true, load);
      slices_->add_gather(load);
    } else {
      add_sums(leaves, load);
      add_parameters(load);
    }
    add_collectives(leaf_ir(), plan_.mesh(), plan_.slices, rank_, load.leaves, "in leaves", load.sent);
  }

  const ir::Program& leaf_ir() const override { return plan_.leaf_program(rank_); }

  Result<runtime::Executable*> leaf_program() override {
    if (leaf_ == nullptr) {
      ASSIGN_OR_RETURN(leaf_, plan_.engine->compile(leaf_ir(), train::leaf_options(plan_.remat)));
    }
    return leaf_.get();
  }

 private:
  train::LeafRange range(int64_t leaves, size_t place) const {
    return plan_.leaves_at(static_cast<int64_t>(place), leaves);
  }
  static int64_t count(const train::LeafRange& own) { return own.end - own.begin; }

  struct LeafRuns {
    LeafOutputs outputs;
    Buffers last;  // with a SliceOverlap: the gradients of this worker's last leaf
  };

  // Runs this worker's leaves and adds up their gradients. `overlap`: null, or what is exchanged beside them;
  // then `sums` gets those of the leaves before the last.
  Result<LeafRuns> run_leaves(runtime::Collectives& c, const Buffers& params, const train::BatchArrays& batch,
                              int64_t leaves, SubtreeSums& sums, LeafChecks& twice, SliceOverlap* overlap) {
    LeafRuns ran{LeafOutputs(static_cast<size_t>(leaves)), {}};
    const train::LeafRange own = range(leaves, place_);
    if (count(own) == 0) return ran;
    RETURN_IF_ERROR(leaf_program());  // compiling it is no leaf's time
    const bool timed = plan_.options.measured_shares || leaves_are_slow();
    const auto aside = [&] { return overlap != nullptr ? overlap->seconds_aside() : 0; };
    LeafClock clock(twice.step(), rank_);
    for (int64_t i = own.begin; i < own.end; ++i) {
      phase("leaf", i);
      fault_point("leaf", read_pulse().step, rank_);
      const bool sent_beside = overlap != nullptr && i + 1 == own.end;
      runtime::RunWatch* const watch =
          overlap != nullptr ? overlap->watch(sent_beside ? &sums : nullptr, {i, 1}) : nullptr;
      ASSIGN_OR_RETURN(auto given, run_leaf({&c, watch}, params, batch, i, twice.step()));
      RETURN_IF_ERROR(twice.computed(i, given));
      if (sent_beside)
        ran.last = std::move(given.gradients);
      else
        RETURN_IF_ERROR(sums.push({i, 1}, std::move(given.gradients)));
      train::LeafResults<Buffer>& output = ran.outputs[static_cast<size_t>(i)];
      output = std::move(given);
      if (timed) RETURN_IF_ERROR(clock.started(output.loss_sum, aside()));
    }
    if (timed) {
      ASSIGN_OR_RETURN(times_.own,
                       clock.ended(ran.outputs[static_cast<size_t>(own.end - 1)].loss_sum, aside()));
    }
    return ran;
  }

  // gradients() with the exchanges of SliceOverlap.
  Result<Buffers> overlapped(runtime::Collectives& c, const Buffers& owned, const Buffers& copies,
                             const train::BatchArrays& batch, std::vector<train::LeafResult>& results,
                             StepChecks& checks) {
    const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
    SliceOverlap overlap(plan_, *slices_, *chunks_, add_chunks_, c, rank_, leaves);
    auto sums = run_beside(overlap, c, owned, copies, batch, leaves, results, checks);
    // `overlap` waits for what is on its way, and the others for what this worker will not send. Where
    // workers disagree, all has been sent, and each of them drops it.
    if (!sums.ok() && !checks.disagreement) c.abort(sums.error().message());
    return sums;
  }

  Result<Buffers> run_beside(SliceOverlap& overlap, runtime::Collectives& c, const Buffers& owned,
                             const Buffers& copies, const train::BatchArrays& batch, int64_t leaves,
                             std::vector<train::LeafResult>& results, StepChecks& checks) {
    phase("gather parameters");
    SubtreeSums sums(leaves, plan_.options.slice_partials, add_whole_);
    LeafChecks twice(plan_, peers_, rank_, checks.step, leaves);
    RETURN_IF_ERROR(overlap.start(owned, copies));
    ASSIGN_OR_RETURN(LeafRuns ran, run_leaves(c, overlap.parameters(), batch, leaves, sums, twice, &overlap));
    phase("exchange gradients");
    fault_point("exchange", read_pulse().step, rank_);
    RETURN_IF_ERROR(overlap.leaves_done(ran.last));
    ran.last.clear(), sums.clear();
    RETURN_IF_ERROR(compare(c, {owned, copies, overlap.parameters()}, batch, twice, checks));
    ASSIGN_OR_RETURN(results, share_results(c, leaves, ran.outputs));
    phase("exchange gradients");
    pulse_phase("exchange", checks.step);
    return overlap.finish();
  }

  // trainer.cross_check. `here.whole`: what the leaves have read.
  Status compare(runtime::Collectives& c, const ParametersHere& here, const train::BatchArrays& batch,
                 LeafChecks& twice, StepChecks& checks) {
    const auto again = [&](int64_t leaf) { return run_leaf({&c}, here.whole, batch, leaf, checks.step); };
    const auto source = [&](size_t k, int64_t of, int64_t to) {
      return slices_ != nullptr ? slices_->source(k, of, to) : gathered_from(plan_, k, of, to);
    };
    const auto parameters = [&] { return compare_parameters(plan_, c, peers_, here, source, checks.step); };
    return twice.compare(c, again, parameters, checks);
  }

  Result<std::vector<train::LeafResult>> share_results(runtime::Collectives& c, int64_t leaves,
                                                       const LeafOutputs& outputs) {
    phase("share results");
    const auto leaves_of = [&](size_t place) {
      std::vector<int64_t> list(static_cast<size_t>(count(range(leaves, place))));
      std::iota(list.begin(), list.end(), range(leaves, place).begin);
      return list;
    };
    return share_leaf_results(plan_, c, peers_, leaves_of, outputs, slices_.get(),
                              plan_.options.measured_shares ? &times_ : nullptr);
  }

  Result<train::LeafResults<Buffer>> run_leaf(const runtime::RunContext& context, const Buffers& params,
                                              const train::BatchArrays& batch, int64_t i, int64_t step) {
    ASSIGN_OR_RETURN(runtime::Executable * leaf, leaf_program());
    Buffers inputs = params;
    for (Buffer& b : leaf_batch(plan_, rank_, batch, i)) inputs.push_back(std::move(b));
    ASSIGN_OR_RETURN(Buffers out, leaf->run(std::move(inputs), context));
    auto given = train::read_fields(plan_.at.leaf_results, std::move(out));
    if (!given.gradients.empty() && given.gradients.back().on_host())
      fault_bytes("gradient", step, rank_, given.gradients.back().mutable_bytes());
    return given;
  }

  // What exchange_gradients sends, and the most gradients that it holds.
  void add_sums(int64_t leaves, train::WorkerLoad& load) const {
    const int64_t owned = plan_.owned_bytes(rank_);
    const auto now = [&](size_t w) {
      return static_cast<int64_t>(train::subtrees(leaves, range(leaves, w)).size());
    };
    const auto planned = [&](size_t w) {
      return planned_subtrees(now(w), leaves, plan_.options.measured_shares);
    };
    const int64_t mine = planned(place_);
    int64_t from = 0, to_owners = 0, packed = 0;
    for (size_t w = 0; w < peers_.size(); ++w) {
      from += planned(w);
      if (w == place_) continue;
      to_owners += now(place_) * plan_.owned_bytes(peers_[w]);
      for (size_t k = 0; k < plan_.trained; ++k)
        if (!spmd::part_offset(plan_.mesh(), peers_[w], plan_.cut(k), plan_.used_shape(k, rank_)))
          packed += mine * plan_.owned_shape(k, peers_[w]).bytes();
    }
    load.gradients =
        std::max(load.gradients, mine * plan_.used_bytes(rank_) + packed + std::min(from, leaves) * owned);
    add_sent(load.sent, "sums of gradients to the owners of their cells", 1, to_owners);
  }

  // What gather_cells sends and makes.
  void add_parameters(train::WorkerLoad& load) const {
    if (plan_.gather_axes.empty()) return;
    const auto receivers = static_cast<int64_t>(plan_.mesh().peers(rank_, plan_.gather_axes).size()) - 1;
    int64_t parameters = 0;
    for (size_t k = 0; k < plan_.n; ++k) {
      if (!plan_.gathered(k)) continue;
      load.gathered += plan_.used_shape(k, rank_).bytes();
      parameters += receivers * plan_.owned_shape(k, rank_).bytes();
    }
    add_sent(load.sent, "parameters to the workers that run other leaves", 1, parameters);
  }

  // Sends every worker its cells of this worker's sums. Returns the sums over all leaves of the cells that
  // this worker owns.
  Result<Buffers> exchange_gradients(runtime::Collectives& c, int64_t leaves, SubtreeSums& mine) {
    phase("exchange gradients");
    fault_point("exchange", read_pulse().step, rank_);
    if (slices_ != nullptr) return slices_->join_whole(c, leaves, mine);
    std::vector<const Buffers*> own;
    for (const auto& [node, sum] : mine.sums()) own.push_back(&sum);
    std::vector<std::vector<train::Subtree>> nodes;
    std::vector<size_t> counts;
    for (size_t w = 0; w < peers_.size(); ++w) {
      nodes.push_back(train::subtrees(leaves, range(leaves, w)));
      counts.push_back(nodes[w].size());
    }
    ASSIGN_OR_RETURN(auto received, exchange_cells(plan_, c, peers_, own, counts));
    mine.clear();
    SubtreeSums sums(leaves, plan_.options.slice_partials, add_owned_);
    for (size_t w = 0; w < peers_.size(); ++w)
      for (size_t i = 0; i < nodes[w].size(); ++i)
        RETURN_IF_ERROR(sums.push(nodes[w][i], std::move(received[w][i])));
    return sums.root();
  }

  const WorkerPlan& plan_;
  int64_t rank_;
  std::vector<int64_t> peers_;  // that run other leaves, itself included
  size_t place_;                // of this worker among them
  Buffers params_;              // what the leaf program reads; empty until it is gathered
  std::unique_ptr<runtime::Executable> leaf_;
  const std::unique_ptr<SliceExchange> slices_;  // null: one level
  GradientAdder add_whole_, add_owned_, add_chunks_;
  std::optional<OverlapChunks> chunks_;  // nothing: exchanges do not overlap with leaves
};

}  // namespace

std::unique_ptr<GradientSchedule> make_step_schedule(const WorkerPlan& plan, int64_t rank) {
  return std::make_unique<StepSchedule>(plan, rank);
}

}  // namespace ostro::fleet
