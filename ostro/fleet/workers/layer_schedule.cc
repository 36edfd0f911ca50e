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
#include "ostro/fleet/workers/collective_bytes.h"
#include "ostro/fleet/workers/gradient_schedule.h"
#include "ostro/fleet/workers/gradient_sums.h"
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
        workers_(static_cast<int64_t>(peers_.size())),
        place_(std::find(peers_.begin(), peers_.end(), rank) - peers_.begin()),
        adder_(*plan.engine) {}

  Result<Buffers> gradients(runtime::Collectives& c, const Buffers& owned, const train::BatchArrays& batch,
                            std::vector<train::LeafResult>& results, StepChecks& /*checks*/) override {
    const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
    LeafOutputs outputs(static_cast<size_t>(leaves));
    SubtreeSums sums(leaves, adder_);
    for (const train::LeafRange& range : rounds(leaves)) {
      ASSIGN_OR_RETURN(Buffers gradients, run_round(c, owned, batch, leaves, range, outputs));
      phase("join rounds");
      fault_point("exchange", read_pulse().step, rank_);
      const std::vector<train::Subtree> nodes = train::subtrees(leaves, range);
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
    const auto leaves_of = [&](size_t place) {
      std::vector<int64_t> list;
      for (const train::LeafRange& range : rounds(leaves))
        if (const int64_t leaf = leaf_of(range, static_cast<int64_t>(place)); leaf >= 0) list.push_back(leaf);
      return list;
    };
    ASSIGN_OR_RETURN(results, share_leaf_results(plan_, c, peers_, leaves_of, outputs));
    return sums.root();
  }

  void reset() override {}  // the leaf program reads the owned cells themselves

  int64_t own_leaves(int64_t leaves) const override {
    int64_t own = 0;
    for (const train::LeafRange& range : rounds(leaves)) own += leaf_of(range, place_) >= 0 ? 1 : 0;
    return own;
  }

  void add_load(int64_t leaves, train::WorkerLoad& load) const override;

  const ir::Program& leaf_ir() const override { return *plan_.leaf.programs[static_cast<size_t>(rank_)]; }

  Result<runtime::Executable*> leaf_program() override {
    const int64_t leaves = plan_.options.leaves > 0 ? plan_.options.leaves : workers_;
    return program_of(round_of(leaves, {0, std::min(leaves, workers_)}));
  }

 private:
  std::vector<train::LeafRange> rounds(int64_t leaves) const {
    std::vector<train::LeafRange> list;
    for (int64_t begin = 0; begin < leaves; begin += workers_)
      list.push_back({begin, std::min(leaves, begin + workers_)});
    return list;
  }

  // The leaf of the worker at this place in a round. -1: it has none.
  int64_t leaf_of(const train::LeafRange& range, int64_t place) const {
    return place < range.end - range.begin ? range.begin + place : -1;
  }

  // The gradients of the round; what else the leaf of this worker gave goes to `outputs`.
  Result<Buffers> run_round(runtime::Collectives& c, const Buffers& owned, const train::BatchArrays& batch,
                            int64_t leaves, const train::LeafRange& range, LeafOutputs& outputs) {
    ASSIGN_OR_RETURN(runtime::Executable * program, program_of(round_of(leaves, range)));
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
    const int64_t leaves = plan_.options.leaves > 0 ? plan_.options.leaves : workers_;
    const spmd::LeafExchange first = round_of(leaves, {0, std::min(leaves, workers_)});
    if (round.firsts == first.firsts && round.counts == first.counts)  // the plan has it
      return plan_.leaf.programs[static_cast<size_t>(rank_)];
    return round_program(plan_, round, rank_);
  }

  const WorkerPlan& plan_;
  int64_t rank_;
  std::vector<int64_t> peers_;  // that run other leaves, itself included
  int64_t workers_, place_;     // how many they are; the place of this worker among them
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
    const spmd::LeafExchange round = round_of(leaves, range);
    ++runs[{round.firsts, round.counts}];
    const std::vector<train::Subtree> nodes = train::subtrees(leaves, range);
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
    add_collectives(**program, plan_.mesh(), rank_, times, "in leaves", load.sent);
    const WholeBytes whole = whole_in_one_block((*program)->body);
    load.layer_parameters = std::max(load.layer_parameters, whole.parameters);
    load.layer_gradients = std::max(load.layer_gradients, whole.gradients);
  }
  add_sent(load.sent, "losses and weights of leaves", 1,
           (workers_ - 1) * load.leaves * leaf_result_bytes(plan_));
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
