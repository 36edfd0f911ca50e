// check_beginning: how a run says that it began, compared with what its directory holds of that.
//
// Of a run that began with a checkpoint's parameters: the state in initial/ is the one that the genesis
// names, and its optimizer's arrays are zero. Of a fork: its parent's chain names this state, and only
// options that a fork may change have changed. Of a run that began with a published model: the genesis does
// not contradict itself, the maker's chain, where it is there, names that state, and with the state's
// manifest the parameters are compared. Reads the initial state once; needs no data and no engine.
#pragma once

#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/chain/chain.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

struct Beginning {
  std::vector<Finding> findings;
  // "a fork of H after step 10: parent/chain.jsonl names its state"; empty: drawn weights. What was compared
  // with nothing begins with "its genesis says".
  std::string text;
  std::vector<std::string> not_shown;  // of that, without the full stop
};

// `parent`: a run directory, the parent of the fork; empty: only its chain in the fork's directory is there.
// `parameters_only`: the record may lack the moments of the initial state; then their hashes are looked at.
// Errors: kInvalidArgument where `parent` is given for a run that is no fork.
Result<Beginning> check_beginning(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                                  const std::string& parent, const models::ModelChoices& models,
                                  bool parameters_only = false);

}  // namespace ostro::audit
