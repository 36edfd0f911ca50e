// Carries units into a store, with commits and progress, up to its ledger.
#pragma once

#include "ostro/data/build/build.h"
#include "ostro/data/build/encoded_unit.h"
#include "ostro/data/build/store_writer.h"

namespace ostro::data {

// Adds all that `units` still gives, commits now and then, and closes the store.
Result<StoreLedger> write_store(StoreWriter& writer, UnitSource& units, const BuildSettings& settings);

}  // namespace ostro::data
