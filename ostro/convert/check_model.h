// check_model: checks that the directory of a model is what its provenance.json says, and what the record of
// the run gives.
//
// Every file of the directory is computed again from the checkpoint that the record's chain names, and
// compared in pieces: nothing is written, and no more is in memory than an export needs. It only reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/context/context.h"
#include "ostro/provenance/provenance.h"

namespace ostro::convert {

struct ModelCheckRequest {
  std::string model;     // the directory
  std::string record;    // a run, a checkpoint or an import; empty: check only the directory itself
  std::string run_hash;  // the published run hash of the record; empty: none
};

struct ModelCheck {
  std::string model, record;
  std::optional<provenance::Provenance> provenance;  // nothing: the directory has none that can be read
  std::string head;                                  // run hash of the record's chain; empty: no chain
  std::vector<audit::Finding> findings;              // everything that is wrong, the worst first
  std::vector<std::string> shown;                    // sentences: what was compared and is equal
  std::vector<std::string> open;                     // sentences: what was not shown, and what would show it
  std::vector<std::string> limits;                   // the same about the chain

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Checks the model. Whatever is wrong with the directory or the record is a finding. Errors: kInvalidArgument
// for a request that no directory can fulfil; those of listing directories. context.progress shows how far it
// is.
Result<ModelCheck> check_model(const Context& context, const ModelCheckRequest& request);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string model_check_text(const ModelCheck& check);
// One JSON object in a line.
std::string model_check_json(const ModelCheck& check);

}  // namespace ostro::convert
