// StepPlan: what each host computes, holds and sends in a step. It comes from the plan that workers use
// (fleet/workers): nothing of it is derived anew here. A value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/fleet/threads/workers.h"
#include "ostro/io/files/file_system.h"
#include "ostro/simulate/step/host_work.h"
#include "ostro/simulate/step/leaf_chunks.h"
#include "ostro/simulate/step/options.h"
#include "ostro/train/options/config.h"
#include "ostro/train/programs/programs.h"

namespace ostro::simulate {

// The run whose steps are planned.
struct RunModel {
  train::TrainConfig config;
  train::CanonicalPrograms programs;
  std::string remat;
  int64_t leaves = 0;           // of the largest step
  int64_t tokens = 0;           // of it
  int64_t parameters = 0;       // their number
  int64_t parameter_bytes = 0;  // in f32
  int64_t arrays = 0;           // of a checkpoint: parameters and the optimizer's arrays
  int64_t state_bytes = 0;      // of these arrays
};

// Traces the programs. `vocab`: the number of tokens; 0: that of the configuration's tokenizer, which is
// read. Errors: those of the configuration, a tokenizer that is not there yet, and a negative number.
Result<RunModel> load_model(io::FileSystem& fs, const train::TrainConfig& config, int64_t vocab);

struct StepPlan {
  int64_t hosts = 1, slices = 1;
  std::vector<int64_t> slice_of;  // by rank; slices are numbered from 0
  std::vector<int64_t> slice_sizes;
  int64_t leaves = 0;
  bool layered = false;     // exchange: layer: hosts exchange inside the leaf program
  bool two_levels = false;  // what grows with the model goes inside slices first
  // What goes between slices is sent while leaves are computed (WorkerPlan::overlaps), in these chunks.
  bool overlaps = false;
  LeafChunks chunks;
  int64_t connections = 1;      // of each pair of hosts in different slices
  double leaf_flops = 0;        // of one leaf
  int64_t layers = 1;           // loops of the leaf program that exchange, at least 1
  std::vector<HostWork> kinds;  // hosts that do the same share one
  std::vector<size_t> kind_of;  // by rank
  bool sampled = false;         // the bytes of some hosts stand for those of all
  // By rank: hosts with the same number own the same cells of the parameters that are cut the most.
  std::vector<int64_t> cells_of;
  std::vector<int64_t> holders;  // holders[rank] keeps copies of the cells of `rank`; empty: none
  // Leaves that are computed twice (trainer.cross_check), by the host at `place_of` among `sharers`.
  fleet::CheckDraw check;
  int64_t sharers = 0;
  std::vector<int64_t> place_of;  // by rank; empty: nothing is checked

  const HostWork& work(int64_t rank) const { return kinds[kind_of[static_cast<size_t>(rank)]]; }
  // By rank: the leaves of others that a host computes again in this step, which is numbered from 1.
  std::vector<int64_t> checked(int64_t step) const;
  // Of all hosts together.
  Traffic sent() const;
  int64_t parts() const;        // into which parameters are cut, at most
  int64_t idle() const;         // the number of hosts without a leaf
  int64_t most_leaves() const;  // of one host
};

// The plan for hosts in slices of these sizes, in the order of their ranks. Up to kAllPlanned hosts each of
// them is planned; of more, those that stand for the others: the first, the last, and the first of each
// number of leaves. Errors: as of fleet::make_worker_plan, and a number of hosts that the mesh does not
// allow.
inline constexpr int64_t kAllPlanned = 32;
Result<StepPlan> plan_step(const RunModel& model, runtime::Engine& engine,
                           const std::vector<int64_t>& slice_sizes);

// Whether the hosts that are left have the whole state of a run. `lost`: by rank of the plan.
bool state_survives(const StepPlan& plan, const std::vector<bool>& lost);

}  // namespace ostro::simulate
