// check_rows, check_proof: whether a proof (batches/proof/data_proof.h) is of a run, and what it shows of it.
// Pure functions.
#pragma once

#include "ostro/audit/record/recorded_run.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::leaf_audit {

// Whether the proof's rows are in the run's data. Errors: kCorrupt says what is not; kUnsupported, the chain
// names no data.
Status check_rows(const batches::DataProof& proof, const chain::Chain& chain);

// What a proof shows. An error of `proof`: the proof is damaged or not of this run, so it shows nothing of
// the run; kCorrupt says what does not fit. An error of `record`, kCorrupt: the proof holds, and shows that
// the chain's batch is not of the form that the configuration gives it.
struct ProofCheck {
  Status proof, record;
};
// Whether its rows are in the run's data, and where the proof has a batch: whether it is the step's, of the
// form that the configuration gives it, its sequences are made of training rows of the components whose
// places they have, and they are those of the leaf that it names. Not checked: the order of the rows within
// a component, and the leaf's path, which needs the leaf. Memory: nothing for what the proof says.
ProofCheck check_proof(const batches::DataProof& proof, const audit::RecordedRun& run);

}  // namespace ostro::leaf_audit
