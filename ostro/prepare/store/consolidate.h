// consolidate_stores: joins finished token stores of parts of a data set into one store, without tokenizing
// again.
#pragma once

#include <string>
#include <vector>

#include "ostro/prepare/store/build.h"

namespace ostro::prepare {

enum class JoinRows {
  kCopy,     // copies the rows into arrays of the new store; refused when a finished in-place store is there
  kInPlace,  // copies nothing: the new store reads the parts' arrays where they are, one after the other
};

// Joins the stores in `parts` into the store of a component: first the training files of all parts in order,
// then the held-out files. The ledger's hash is the same as after a build from all texts. The files that the
// configuration names must be those of the parts; this is not checked when they cannot be found on this
// machine. Copying continues after a kill. Joining in place writes little, and writes the ledger last.
//
// Errors: kInvalidArgument when parts were made with other options, or together are not the sources; kBusy
// while another process writes there; kCorrupt, naming the part, when one is damaged.
Result<data::StoreLedger> consolidate_stores(io::FileSystem& fs, const data::DataOptions& options,
                                             const data::Component& component,
                                             const tokenizer::Tokenizer& tokenizer,
                                             const std::vector<std::string>& parts, JoinRows rows,
                                             const data::BuildSettings& settings);

}  // namespace ostro::prepare
