// check_maker, check_made, bundle_of: check what a genesis says about the model that its run began with
// (`maker`, `origin`) against the parameters in the run directory (docs/reference/formats/chain.md,
// "Makers"); finds the bundle of a model.
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

// Compares the parameters in `initial`, the manifest of the run's initial state, with the manifest of the
// maker's state in RUN/maker. `initial` must fit `genesis`. Returns "" when all of them are those of that
// state, else the reason why this cannot be shown. Error kCorrupt: the two contradict each other.
Result<std::string> check_made(io::FileSystem& fs, const std::string& run, const chain::GenesisEntry& genesis,
                               const checkpoint::Manifest& initial);

// Copies the manifest of the maker's state, the one after `step` steps in the run directory `record`, into
// RUN/maker, which has the chain already. Does nothing when `record` has no such manifest. Error kCorrupt:
// the manifest is that of another state.
Status copy_maker_manifest(io::FileSystem& fs, const std::string& record, const chain::Maker& maker,
                           int64_t step, const std::string& run);

// Returns the directory of the bundle to which `from` belongs: `from` is the bundle, or its record, or lies
// in the record. Nothing: it belongs to no bundle.
Result<std::optional<std::string>> bundle_of(io::FileSystem& fs, const std::string& from);

}  // namespace ostro::audit
