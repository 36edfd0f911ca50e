// prove_step: makes proofs of what a run's steps were trained on, and of their leaves
// (batches/proof/data_proof.h).
#pragma once

#include <optional>
#include <string>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::leaf_audit {

// A leaf's place in the Merkle tree of a step.
struct LeafPath {
  int64_t leaves = 0;
  std::vector<Sha256Digest> path;
};
// Of the leaves that leaves.jsonl has, of which there must be `leaves`. Errors: kNotFound, the run keeps none
// of this step; kCorrupt, they do not have the chain's root, or are more or fewer.
Result<LeafPath> path_of_leaf(io::FileSystem& fs, const std::string& run_directory,
                              const chain::StepEntry& entry, int64_t leaf, int64_t leaves);

// How many leaves a step of the run has. Errors: kInvalidArgument, the chain has no such step, or the step no
// such leaf (where `leaf` is not -1).
Result<int64_t> leaves_of_step(const audit::RecordedRun& run, const std::string& run_directory, int64_t step,
                               int64_t leaf);

// The rows of a step's batch, or with a leaf (not -1) those of the leaf, with its path. `cache` as for
// train::open_run_data. Errors: of both functions above, of opening the run and its data.
Result<batches::DataProof> prove_step(io::FileSystem& fs, const std::string& run_directory,
                                      const std::string& cache, const models::ModelChoices& models,
                                      int64_t step, int64_t leaf);

}  // namespace ostro::leaf_audit
