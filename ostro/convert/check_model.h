// check_model: whether the directory of a model is what its provenance.json says, and what a record gives.
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
  std::string record;    // a run, a checkpoint or an import; empty: only what the directory says of itself
  std::string run_hash;  // of the record's chain, that was published; empty: none
};

struct ModelCheck {
  std::string model, record;
  std::optional<provenance::Provenance> provenance;  // nothing: the directory has none that can be read
  std::string head;                                  // run hash of the record's chain; empty: no chain
  std::vector<audit::Finding> findings;              // all that is not as it should be, the worst first
  std::vector<std::string> shown;                    // what was compared and is equal, a sentence each
  std::vector<std::string> open;                     // what was not shown, and what would show it
  std::vector<std::string> limits;  // the same of the chain, which no file of the model shows

  audit::Verdict verdict() const { return audit::verdict_of_sorted(findings); }
};

// Whatever is wrong with the directory or the record is a finding. Errors: kInvalidArgument for a request
// that no directory can fulfil; those of reading directories that cannot be listed. context.progress shows
// how far it is.
Result<ModelCheck> check_model(const Context& context, const ModelCheckRequest& request);

// The verdict's line first, then the other findings, what was shown and what was not. Ends with a newline.
std::string model_check_text(const ModelCheck& check);
// One JSON object in a line.
std::string model_check_json(const ModelCheck& check);

}  // namespace ostro::convert
