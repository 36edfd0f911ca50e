// maker_of: which published model a run begins with, and the record of the run that made it.
//
// A model is published when its directory says which state of which run it is (provenance.json), or when it
// lies in a bundle. A run of the same user that is not published makes no maker. Only reads and copies.
#pragma once

#include <optional>
#include <string>

#include "ostro/chain/genesis.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lineage {

// `from`: trainer.initialize_from; `origin`: of the parameters that were taken of it
// (audit::take_parameters). Errors: the origin, or the checkpoint of a bundle, cannot be read.
Result<std::optional<chain::Maker>> maker_of(io::FileSystem& fs, const std::string& from,
                                             const std::optional<std::string>& origin);

// Copies the chain of the maker, and the manifest of its state, into the run directory (RUN/maker), where
// they lie at or in `from`: a bundle, or a bundle's record. Elsewhere there are none, and that is no error.
// Error kCorrupt: that chain does not have what the maker says.
Status copy_maker(io::FileSystem& fs, const std::string& from, const chain::Maker& maker,
                  const std::string& run_directory);

}  // namespace ostro::lineage
