// Makers: what ties a genesis's words about its model (`maker`, `origin`) to the parameters that the run
// began with (docs/reference/formats/chain.md, "Makers"), and in which bundle a model lies.
#pragma once

#include <optional>
#include <string>

#include "ostro/chain/chain.h"
#include "ostro/checkpoint/manifest.h"
#include "ostro/io/files/file_system.h"

namespace ostro::audit {

// Checks that the genesis does not contradict itself: only a run that began with parameters that `initial`
// names can have a maker or an origin, a fork has neither, and an origin is `from` the maker's state. `where`
// is the chain's file. Error kCorrupt: with both values.
Status check_claims(const chain::GenesisEntry& genesis, const std::string& where);

// Checks that the chain at `where` has the entry that the maker of a run's parameters names, and that it
// names that state. Error kCorrupt: with both values.
Status check_maker(const chain::Maker& maker, const chain::Chain& chain, const std::string& where);

// Compares the parameters in the manifest of the run's initial state, which fits `genesis`, with the manifest
// of the maker's state in RUN/maker. Returns an empty text where all of them are those of that state, else
// why that is not shown. Error kCorrupt: the two contradict each other.
Result<std::string> check_made(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                               const checkpoint::Manifest& initial);

// Copies the manifest of the maker's state, which the run directory `record` has after `step` steps, into
// RUN/maker, where the chain lies already. Where the record has none, there is none. Error kCorrupt: it is of
// another state.
Status copy_maker_manifest(io::FileSystem& fs, const std::string& record, const chain::Maker& maker,
                           int64_t step, const std::string& run);

// The directory of the bundle that `from` means: it is a bundle, or the record of one, or lies in that.
// Nothing: none of these.
Result<std::optional<std::string>> bundle_of(io::FileSystem& fs, const std::string& from);

}  // namespace ostro::audit
