// check_beginning: compares what a run's genesis says about its beginning with what its directory holds.
//
// - A run that began with a checkpoint's parameters: the state in initial/ is the one that the genesis names,
//   and its optimizer's arrays are zero.
// - A fork: the chain of its parent names this state, and only options that a fork may change have changed.
// - A run that began with a published model: the genesis does not contradict itself. If the record has the
//   maker's chain, that names the state; if it has the state's manifest, the parameters are those of it.
//
// Reads the initial state once; needs no data and no engine.
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
  // "a fork of H after step 10: parent/chain.jsonl names its state"; empty: the weights were drawn. A part
  // that nothing was compared with begins with "its genesis says".
  std::string text;
  std::vector<std::string> not_shown;  // what the record leaves open, one sentence each, without a full stop
};

// Checks the beginning of the run in the directory `run`, whose chain is `chain`. `parent`: the run directory
// of a fork's parent; empty: the copy of its chain in the fork's directory is used. `parameters_only`: the
// record may lack the moments of the initial state; of those only the hashes in the manifest are checked.
// Error: kInvalidArgument when `parent` is given for a run that is no fork. All else is a finding.
Result<Beginning> check_beginning(io::FileSystem& fs, const std::string& run, const chain::Chain& chain,
                                  const std::string& parent, const models::ModelChoices& models,
                                  bool parameters_only = false);

}  // namespace ostro::audit
