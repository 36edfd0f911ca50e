// WorkerPlan: the plan that all workers of a run share: the programs, partitioned over the mesh, and which
// worker holds which cells.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/fleet/parts/state_layout.h"
#include "ostro/fleet/parts/update_parts.h"
#include "ostro/fleet/shares/row_share.h"
#include "ostro/fleet/shares/share_rule.h"
#include "ostro/fleet/slices/slices.h"
#include "ostro/spmd/partition.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/programs/leaf_plan.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/state_arrays.h"
#include "ostro/train/step/step.h"

namespace ostro::fleet {

struct WorkerOptions {
  ir::Sharding sharding;  // the mesh, and what is split over it (options/mesh.h)
  // axis -> number of cells (numerics.cells): parameters are owned in whole cells
  spmd::Cells cells = {};
  train::ExchangeSchedule exchange = train::ExchangeSchedule::kStep;
  // The number of leaves of the largest step; a step may have fewer. 0: not known.
  int64_t leaves = 0;
  // The number of copies of each worker's cells in the memory of another worker: 0 or 1. Cells that several
  // workers own anyway have no copy.
  int64_t state_replicas = 0;
  std::vector<std::string> hosts = {};  // of each worker, so that a copy is on another host; empty: one host
  // The name of each worker's slice, so that little is sent between slices (slices.h); empty: one slice. If
  // no slice has more than half of the workers, copies are in another slice, not only on another host.
  std::vector<std::string> slices = {};
  int64_t slice_partials = 0;  // numerics.slice_partials
  bool slice_overlap = true;   // trainer.mesh.slice_overlap
  CheckDraw check = {};        // trainer.cross_check
  // trainer.shares: workers tell each other how long their leaves take, and shares may change. Only with
  // ExchangeSchedule::kStep.
  bool measured_shares = false;
  LeafShares shares = {};  // with which workers begin
  // When set, the plan is for this worker alone: a process needs only the programs of its own worker.
  std::optional<int64_t> only = {};
};

// It does not change after it is made, but for `shares`.
struct WorkerPlan {
  train::CanonicalPrograms programs;
  WorkerOptions options;
  runtime::Engine* engine = nullptr;
  std::string remat;
  train::Signatures at;  // of `programs`; the partitions keep the order of parameters and results
  size_t n = 0;          // number of parameters
  size_t trained = 0;    // the first `trained` parameters are trained and have gradients
  // The arrays of the state are numbered: the parameters, then those of the optimizer.
  train::StateArrays arrays;
  int64_t rows = 0;  // rows of one leaf
  // The leaf program, split over the mesh axes that do not carry leaves. Workers that differ only along the
  // axes that do carry leaves run the same program on different leaves. With ExchangeSchedule::kLayer they
  // exchange the gradients in it; then it is the program of `first_round`, the first round of
  // `options.leaves` leaves. It is partitioned over leaf_mesh().
  spmd::Partition leaf;
  spmd::LeafExchange first_round;
  Slices slices;
  // With ExchangeSchedule::kLayer, if each slice has whole coordinates of the mesh axis replica: the mesh of
  // a slice, within which the leaf program runs. Otherwise empty.
  SliceMesh slice_mesh;
  // The parts of the update program, split over all mesh axes.
  UpdatePartitions update;
  StateLayout state;  // where the cells of the arrays are
  // Worker holders[rank] mirrors the cells of `rank`: it keeps a copy of them and updates it, too. Empty:
  // there are no mirrors.
  std::vector<int64_t> holders;
  // Who runs how many leaves. It may change between two steps, for all workers at once, when no worker is in
  // a step.
  LeafShares shares;
  std::string gather_axes;  // mesh axes that carry leaves and split parameters, for Mesh::peers; "": none
  std::vector<spmd::Layout> cuts;

  const ir::Mesh& mesh() const { return options.sharding.mesh; }
  // True when the workers of a slice run rounds of leaves by themselves.
  bool rounds_in_slices() const { return !slice_mesh.ranks.empty(); }
  // True when what grows with the model is exchanged inside slices first, then between them.
  bool two_levels() const {
    return slices.several() && (options.exchange == train::ExchangeSchedule::kStep || rounds_in_slices());
  }
  // True when this is done while leaves are computed.
  bool overlaps() const {
    return two_levels() && options.exchange == train::ExchangeSchedule::kStep && options.slice_overlap;
  }
  const ir::Mesh& leaf_mesh() const { return rounds_in_slices() ? slice_mesh.mesh : mesh(); }
  int64_t leaf_rank(int64_t rank) const {
    return rounds_in_slices() ? slice_mesh.ranks[static_cast<size_t>(rank)] : rank;
  }
  const ir::Program& leaf_program(int64_t rank) const {
    return *leaf.programs[static_cast<size_t>(leaf_rank(rank))];
  }
  // The workers that run different leaves of the batch beside `rank`, itself included, in the order of their
  // leaves.
  std::vector<int64_t> leaf_peers(int64_t rank) const { return mesh().peers(rank, train::kLeafPeers); }
  // The rows of a batch that worker `rank` reads, with the present shares.
  RowShare rows_of(int64_t rank) const;
  // The slice of each worker that runs different leaves, by place.
  std::vector<int64_t> slices_of_sharers() const;
  // How many workers run different leaves; with ExchangeSchedule::kStep, the leaves of the one at `place`
  // among them.
  int64_t sharers() const;
  train::LeafRange leaves_at(int64_t place, int64_t leaves) const {
    return shares.range(leaves, sharers(), place);
  }

  // The shape of the whole array k of the state. A gradient has the shape of its parameter.
  const ir::Shape& shape(size_t k) const { return update.apply.param_shapes[k]; }
  // The layout by which workers own the cells of array k: every worker updates the elements that it holds by
  // this layout. A gradient has the layout of its parameter.
  const spmd::Layout& owned(size_t k) const { return update.apply.params[k]; }
  // The layout in which the leaf program takes parameter k: whole along the axes that carry leaves or, with
  // ExchangeSchedule::kLayer, as it is owned.
  const spmd::Layout& used(size_t k) const { return leaf.params[k]; }
  // The layout by which `owned` cuts a parameter that a worker holds as in `used`.
  const spmd::Layout& cut(size_t k) const { return cuts[k]; }
  ir::Shape owned_shape(size_t k, int64_t rank) const;
  ir::Shape used_shape(size_t k, int64_t rank) const;
  int64_t owned_bytes(int64_t rank) const;  // of all gradients
  int64_t state_bytes(int64_t rank) const;  // of all arrays
  int64_t used_bytes(int64_t rank) const;   // of all gradients
  // True when parameter k is split over workers that run different leaves.
  bool gathered(size_t k) const;
  // The arrays of which holders keep copies, ascending: the parameters of which only one worker owns each
  // element, and their arrays of the optimizer.
  std::vector<size_t> mirrored;
  int64_t mirrored_gradients() const;
  // The place of array k in `mirrored`; nothing: it is not there.
  std::optional<size_t> mirrored_place(size_t k) const;
  // The rank that `rank` mirrors; nothing when it mirrors none.
  std::optional<int64_t> mirror_of(int64_t rank) const;
  // True when `rank` is the first of the workers that hold the same elements of array k.
  bool first_holder(size_t k, int64_t rank) const;
};

// Makes the plan. `engine` must outlive it. Error: an axis that cannot be split in this way (with the key of
// numerics that allows it).
Result<WorkerPlan> make_worker_plan(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                    const std::string& remat, const WorkerOptions& options);

// What decides on unequal shares from now on. `seconds`: the times of leaves that are known, by place.
ShareKeeper share_keeper(const WorkerPlan& plan, const std::vector<double>& seconds);

// The sums that a round of ExchangeSchedule::kLayer adds up, when it runs the leaves `range` of `leaves`;
// their subtrees, ascending.
std::vector<train::Subtree> round_subtrees(const WorkerPlan& plan, int64_t leaves, train::LeafRange range);
spmd::LeafExchange round_of(const WorkerPlan& plan, int64_t leaves, train::LeafRange range);

// The leaf program of a round for worker `rank`, with ExchangeSchedule::kLayer, over leaf_mesh().
Result<std::shared_ptr<const ir::Program>> round_program(const WorkerPlan& plan,
                                                         const spmd::LeafExchange& round, int64_t rank);

// The update program for the cells of mirrored arrays that worker `rank` owns, for the worker that keeps
// copies of them.
Result<ir::Program> mirrored_apply(const WorkerPlan& plan, int64_t rank);

// The placement that decides where the cells of parameters are (make_state_layout).
spmd::Placement placement_for(const train::CanonicalPrograms& programs, const WorkerOptions& options);

}  // namespace ostro::fleet
