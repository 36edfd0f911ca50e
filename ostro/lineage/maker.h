// maker_of, copy_maker: the published model that a run begins with, and the record of the run that made it.
//
// A model is published when its directory says which state of which run it is (provenance.json), or when it
// lies in a bundle. A checkpoint of a run that is not published has no maker.
#pragma once

#include <optional>
#include <string>

#include "ostro/chain/genesis.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lineage {

// Returns the run and the state that `from` (trainer.initialize_from) comes from; nothing when it is not
// published. `origin`: the origin of an imported checkpoint, as audit::take_parameters returns it.
// Errors: the origin, or the checkpoint of a bundle, cannot be read.
Result<std::optional<chain::Maker>> maker_of(io::FileSystem& fs, const std::string& from,
                                             const std::optional<std::string>& origin);

// Copies the chain of the maker, and the manifest of its state, into the run directory (RUN/maker). `from`
// has them when it is a bundle, or lies in a bundle's record; otherwise nothing is copied. Error: kCorrupt
// when the chain does not have the entry and the state of `maker`.
Status copy_maker(io::FileSystem& fs, const std::string& from, const chain::Maker& maker,
                  const std::string& run_directory);

}  // namespace ostro::lineage
