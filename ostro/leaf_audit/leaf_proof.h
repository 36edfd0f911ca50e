// prove_step: makes the proof of the rows that a step of a run, or one leaf of it, was trained on
// (batches/proof/data_proof.h).
#pragma once

#include <string>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::leaf_audit {

// A leaf's place in the Merkle tree of a step.
struct LeafPath {
  int64_t leaves = 0;
  std::vector<Sha256Digest> path;
};
// Returns the path of a leaf, from the leaves of this step in leaves.jsonl, of which there must be `leaves`.
// Errors: kNotFound when the run keeps no leaves of this step; kCorrupt when they do not have the chain's
// root, or are more or fewer.
Result<LeafPath> path_of_leaf(io::FileSystem& fs, const std::string& run_directory,
                              const chain::StepEntry& entry, int64_t leaf, int64_t leaves);

// Returns the number of leaves of a step. Error: kInvalidArgument when the chain has no such step, or the
// step has no leaf `leaf` (-1: any).
Result<int64_t> leaves_of_step(const audit::RecordedRun& run, const std::string& run_directory, int64_t step,
                               int64_t leaf);

// Returns the proof of the rows of a step's batch, or, unless `leaf` is -1, of those of one leaf, with its
// path. `cache` is that of train::open_run_data. Errors: those of the two functions above, and of opening the
// run and its data.
Result<batches::DataProof> prove_step(io::FileSystem& fs, const std::string& run_directory,
                                      const std::string& cache, const models::ModelChoices& models,
                                      int64_t step, int64_t leaf);

}  // namespace ostro::leaf_audit
