// check_rows, check_proof: check that a proof (batches/proof/data_proof.h) belongs to a run, and what it
// shows about the run. Pure functions.
#pragma once

#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::leaf_audit {

// Checks that the proof's rows are in the run's data. Errors: kCorrupt, with what is not; kUnsupported, when
// the chain has no roots of its data.
Status check_rows(const batches::DataProof& proof, const chain::Chain& chain);

// The result of check_proof. An error in `proof`: the proof is damaged or does not belong to this run, so it
// shows nothing about the run; kCorrupt says what does not fit. An error in `record`, kCorrupt: the proof
// holds, and shows that the chain's batch does not have the form that the configuration gives it.
struct ProofCheck {
  Status proof, record;
};
// Checks that the proof's rows are in the run's data. For a proof with a batch it also checks that
//
// - the batch is that of the step, and has the form that the configuration gives it;
// - its sequences are made of training rows, each of the component that the mixture has at that place;
// - the sequences are those of the leaf that the proof names, if it names one.
//
// It does not check the order of the rows within a component, nor the leaf's path, which needs the leaf. No
// size in the proof makes it allocate memory.
ProofCheck check_proof(const batches::DataProof& proof, const audit::RecordedRun& run);

}  // namespace ostro::leaf_audit
