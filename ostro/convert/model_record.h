// ModelRecord, open_record: the state of a record that a model directory is said to be made of, and what the
// record's chain says of it.
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

// Finds the state of which `made` says the model was made in a run, a checkpoint or an import; without
// `made`, the newest. What contradicts the chain, and what is missing, is added to `findings`. Of a run with
// its configuration that is compared with the chain, too (audit/record/recorded_run.h).
Result<ModelRecord> open_record(const Context& context, const std::string& where,
                                const std::optional<provenance::Provenance>& made,
                                std::vector<audit::Finding>& findings);

}  // namespace ostro::convert
