// Joins finished token stores of parts of a data set into the store of the whole, without tokenizing again.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/build.h"

namespace ostro::data {

// Copies the rows of the stores in `parts` into `cache_dir`: training files of all parts in their order, then
// held-out files. The ledger is the one that a build from all texts gives. `sources` are the files that the
// configuration names, with which those of the parts must agree; not looked at when they cannot be found
// here. Goes on after a kill.
//
// Errors: kInvalidArgument when parts were made otherwise than `wanted` says, or do not add up to the
// sources; kBusy while another process writes there; kCorrupt, naming the part, when one is damaged.
Result<StoreLedger> consolidate_stores(io::FileSystem& fs, const std::vector<std::string>& parts,
                                       const std::string& cache_dir, const Preprocessing& wanted,
                                       const Result<std::vector<SourceFile>>& sources, ElementType ids,
                                       const BuildSettings& settings);

// The same into the store of a component.
Result<StoreLedger> consolidate_stores(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer,
                                       const std::vector<std::string>& parts, const BuildSettings& settings);

}  // namespace ostro::data
