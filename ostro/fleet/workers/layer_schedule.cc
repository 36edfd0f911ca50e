// exchange: layer. Leaves are dealt out in rounds: in round r, worker w of W runs leaf r W + w. The leaf
// program takes the cells that the worker owns, gathers a layer's parameters where it uses them, and
// exchanges a layer's gradients where it has made them. It gives the sums of the round's subtrees of leaves,
// for the owned cells. So no worker holds whole parameters or gradients.
#include <algorithm>
#include <cstring>
#include <map>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/fleet/exchange/collective_bytes.h"
#include "ostro/fleet/workers/gradient_schedule.h"
#include "ostro/fleet/workers/leaf_runs.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

// Index i of the axis "part", which has one index per subtree.
Result<Buffer> part_of(const Buffer& sums, int64_t i) {
  const ir::Shape shape = sums.shape().without("part");
  const auto at = static_cast<size_t>(sums.shape().find("part"));
  if (sums.shape().axes[at].size == 1) return sums.with_shape(shape);
  ASSIGN_OR_RETURN(const Buffer whole, sums.to_host());
  Buffer out = Buffer::empty(shape);
  int64_t size = ir::dtype_size(shape.dtype);
  for (size_t a = at; a < shape.axes.size(); ++a) size *= shape.axes[a].size;
  const int64_t stride = size * sums.shape().axes[at].size;
  for (int64_t from = i * size, to = 0; to < out.shape().bytes(); from += stride, to += size)
    std::memcpy(out.mutable_bytes().data() + to, whole.bytes().data() + from, static_cast<size_t>(size));
  return out;
}

using RoundKey = std::pair<std::vector<int64_t>, std::vector<int64_t>>;  // of LeafExchange

class LayerSchedule final : public GradientSchedule {
 public:
  LayerSchedule(const WorkerPlan& plan, int64_t rank)
      : plan_(plan),
        rank_(rank),
        peers_(plan.leaf_peers(rank)),
        share_(plan.rows_of(rank)),
        workers_(share_.count > 0 ? share_.count : share_.workers),
        place_(share_.place - share_.first),
        slices_(make_slice_exchange(plan, rank)),
        adder_(*plan.engine) {}

  Result<Buffers> gradients(runtime::Collectives& c, const Buffers& owned, const Buffers& /*copies*/,
                            const train::BatchArrays& batch, std::vector<train::LeafResult>& results,
                            StepChecks& /*checks*/) override {
    WithinSlice near(c, plan_.slices);
    runtime::Collectives& sharers = slices_ != nullptr ? near : c;
    const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
    LeafOutputs outputs(static_cast<size_t>(leaves));
    SubtreeSums sums(leaves, plan_.options.slice_partials, adder_);
    for (const train::LeafRange& range : rounds(leaves)) {
      ASSIGN_OR_RETURN(Buffers gradients, run_round(sharers, owned, batch, leaves, range, outputs));
      phase("join rounds");
      fault_point("exchange", read_pulse().step, rank_);
      const std::vector<train::Subtree> nodes = round_subtrees(plan_, leaves, range);
      for (size_t i = 0; i < nodes.size(); ++i) {
        Buffers part;
        for (const Buffer& gradient : gradients) {
          ASSIGN_OR_RETURN(part.emplace_back(), part_of(gradient, static_cast<int64_t>(i)));
        }
        if (i + 1 == nodes.size()) gradients.clear();
        RETURN_IF_ERROR(sums.push(nodes[i], std::move(part)));
      }
    }
    phase("share results");
    const auto leaves_of = [&](size_t place) { return plan_.rows_of(peers_[place]).own_leaves(leaves); };
    ASSIGN_OR_RETURN(results, share_leaf_results(plan_, c, peers_, leaves_of, outputs, slices_.get()));
    if (slices_ == nullptr) return sums.root();
    phase("exchange gradients");
    return slices_->join_owned(c, leaves, sums);
  }

  void reset() override {}  // the leaf program reads the owned cells themselves

  int64_t own_leaves(int64_t leaves) const override {
    return static_cast<int64_t>(share_.own_leaves(leaves).size());
  }

  void add_load(int64_t leaves, train::WorkerLoad& load) const override;

  const ir::Program& leaf_ir() const override { return plan_.leaf_program(rank_); }

  Result<runtime::Executable*> leaf_program() override { return program_of(plan_.first_round); }

 private:
  // Of the workers that share rounds with this one: all, or those of its slice.
  std::vector<train::LeafRange> rounds(int64_t leaves) const {
    const train::LeafRange all = share_.dealt(leaves);
    std::vector<train::LeafRange> list;
    for (int64_t begin = all.begin; begin < all.end; begin += workers_)
      list.push_back({begin, std::min(all.end, begin + workers_)});
    return list;
  }

  // The leaf of the worker at this place among them in a round. -1: it has none.
  int64_t leaf_of(const train::LeafRange& range, int64_t place) const {
    return place < range.end - range.begin ? range.begin + place : -1;
  }

  // The gradients of the round; what else the leaf of this worker gave goes to `outputs`.
  Result<Buffers> run_round(runtime::Collectives& c, const Buffers& owned, const train::BatchArrays& batch,
                            int64_t leaves, const train::LeafRange& range, LeafOutputs& outputs) {
    ASSIGN_OR_RETURN(runtime::Executable * program, program_of(round_of(plan_, leaves, range)));
    if (last_ != nullptr && last_ != program) last_->release();
    last_ = program;
    // A worker without a leaf takes part in the gathers of the others; what it computes is not read.
    const int64_t mine = leaf_of(range, place_), leaf = mine >= 0 ? mine : range.begin;
    phase("leaf", leaf);
    fault_point("leaf", read_pulse().step, rank_);
    Buffers inputs = owned;
    for (Buffer& b : leaf_batch(plan_, rank_, batch, leaf)) inputs.push_back(std::move(b));
    ASSIGN_OR_RETURN(Buffers out, program->run(std::move(inputs), {&c}));
    auto given = train::read_fields(plan_.at.leaf_results, std::move(out));
    Buffers gradients = std::move(given.gradients);
    if (mine >= 0) outputs[static_cast<size_t>(leaf)] = std::move(given);
    return gradients;
  }

  Result<runtime::Executable*> program_of(const spmd::LeafExchange& round) {
    auto& slot = programs_[{round.firsts, round.counts}];
    if (slot == nullptr) {
      ASSIGN_OR_RETURN(const auto program, partitioned(round));
      ASSIGN_OR_RETURN(slot, plan_.engine->compile(*program, train::leaf_options(plan_.remat)));
    }
    return slot.get();
  }

  Result<std::shared_ptr<const ir::Program>> partitioned(const spmd::LeafExchange& round) const {
    const spmd::LeafExchange& first = plan_.first_round;
    if (round.firsts == first.firsts && round.counts == first.counts)  // the plan has it
      return plan_.leaf.programs[static_cast<size_t>(plan_.leaf_rank(rank_))];
    return round_program(plan_, round, rank_);
  }

  const WorkerPlan& plan_;
  int64_t rank_;
  std::vector<int64_t> peers_;  // that run other leaves, itself included
  RowShare share_;
  int64_t workers_, place_;  // that run rounds together; the place of this worker among them
  const std::unique_ptr<SliceExchange> slices_;  // null: one level
  GradientAdder adder_;
  // By what a round adds up: full rounds differ if their number of leaves is no power of two, and the last
  // one may have fewer leaves.
  std::map<RoundKey, std::unique_ptr<runtime::Executable>> programs_;
  runtime::Executable* last_ = nullptr;
};

// Partial sums are counted as gradients() makes them: those of earlier rounds, then what the program gives,
// and its parts if it gives several.
void LayerSchedule::add_load(int64_t leaves, train::WorkerLoad& load) const {
  load.leaves = own_leaves(leaves);
  const int64_t owned = plan_.owned_bytes(rank_);
  std::map<RoundKey, int64_t> runs;
  std::vector<train::Subtree> sums;
  for (const train::LeafRange& range : rounds(leaves)) {
    const spmd::LeafExchange round = round_of(plan_, leaves, range);
    ++runs[{round.firsts, round.counts}];
    const std::vector<train::Subtree> nodes = round_subtrees(plan_, leaves, range);
    const size_t made = nodes.size() * (nodes.size() > 1 ? 2 : 1);
    load.partials = std::max(load.partials, static_cast<int64_t>(sums.size() + made));
    for (train::Subtree node : nodes) {
      for (; !sums.empty() && train::siblings(leaves, sums.back(), node); sums.pop_back())
        node = {sums.back().first, sums.back().count + node.count};
      sums.push_back(node);
    }
  }
  load.gradients = load.partials * owned;
  for (const auto& [key, times] : runs) {
    const auto program = partitioned({key.first, key.second});
    OSTRO_CHECK(program.ok(), "a round cannot be partitioned: {}", program.error().message());
    // Programs of a slice send nothing to other slices.
    add_collectives(**program, plan_.leaf_mesh(), plan_.rounds_in_slices() ? Slices() : plan_.slices,
                    plan_.leaf_rank(rank_), times, "in leaves", load.sent);
    const WholeBytes whole = whole_in_one_block((*program)->body);
    load.layer_parameters = std::max(load.layer_parameters, whole.parameters);
    load.layer_gradients = std::max(load.layer_gradients, whole.gradients);
  }
  add_leaf_results(plan_, rank_, leaves, slices_.get(), load);
  if (slices_ != nullptr) slices_->add_joins(leaves, false, load);
}

}  // namespace

std::unique_ptr<GradientSchedule> make_layer_schedule(const WorkerPlan& plan, int64_t rank) {
  return std::make_unique<LayerSchedule>(plan, rank);
}

std::unique_ptr<GradientSchedule> make_schedule(const WorkerPlan& plan, int64_t rank) {
  return plan.options.exchange == train::ExchangeSchedule::kLayer ? make_layer_schedule(plan, rank)
                                                                  : make_step_schedule(plan, rank);
}

}  // namespace ostro::fleet
