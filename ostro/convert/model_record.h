// ModelRecord, open_record: the state from which a model directory is said to be made, found in a record, and
// the record's chain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/chain/chain.h"
#include "ostro/context/context.h"
#include "ostro/provenance/provenance.h"

namespace ostro::convert {

struct ModelRecord {
  std::string where;  // as it was named
  std::string run;    // the directory with the chain; empty: there is none
  std::optional<chain::Chain> chain;
  std::string checkpoint;   // directory of the state; empty: it is not there
  int64_t step = 0;         // of the state
  bool is_of_model = true;  // false: the chain is another run's, so nothing else is worth comparing
};

// Finds, in the run, checkpoint or import at `where`, the state from which the model was made as `made` says;
// without `made`, the newest state. Adds everything that contradicts the chain or is missing to `findings`.
// The configuration of a run is compared with the chain, too (audit/record/recorded_run.h). Errors: those of
// listing.
Result<ModelRecord> open_record(const Context& context, const std::string& where,
                                const std::optional<provenance::Provenance>& made,
                                std::vector<audit::Finding>& findings);

}  // namespace ostro::convert
