// The loop of a build: adds units to a store, with commits and progress, and finishes it.
#pragma once

#include "ostro/prepare/store/build.h"
#include "ostro/prepare/store/encoded_unit.h"
#include "ostro/prepare/store/store_writer.h"

namespace ostro::data {

// Adds all remaining units, commits from time to time, and finishes the store.
Result<StoreLedger> write_store(StoreWriter& writer, UnitSource& units, const BuildSettings& settings);

}  // namespace ostro::data
