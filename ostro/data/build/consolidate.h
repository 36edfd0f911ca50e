// Joins finished token stores of parts of a data set into the store of the whole, without tokenizing again.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/build/build.h"

namespace ostro::data {

enum class JoinRows {
  kCopy,     // into arrays of the whole's own; refused where that is finished, in place
  kInPlace,  // none: the parts' arrays are read where they are, one after the other
};

// Joins the stores in `parts` into that of a component: training files of all parts in their order, then
// held-out files. The ledger's hash is the one that a build from all texts gives. Files that the
// configuration names must be those of the parts; they are not looked at when they cannot be found here.
// Copying goes on after a kill; what is written in place is little, and written last.
//
// Errors: kInvalidArgument when parts were made otherwise than the options say, or do not add up to the
// sources; kBusy while another process writes there; kCorrupt, naming the part, when one is damaged.
Result<StoreLedger> consolidate_stores(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer,
                                       const std::vector<std::string>& parts, JoinRows rows,
                                       const BuildSettings& settings);

}  // namespace ostro::data
