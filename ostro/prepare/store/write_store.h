// write_store: the loop of a build: adds units to a store, with commits and progress, and finishes it.
#pragma once

#include "ostro/prepare/store/build.h"
#include "ostro/prepare/store/encoded_unit.h"
#include "ostro/prepare/store/store_writer.h"

namespace ostro::prepare {

// Adds all remaining units, commits from time to time, and finishes the store. Errors: those of the units
// and of StoreWriter.
Result<data::StoreLedger> write_store(StoreWriter& writer, UnitSource& units,
                                      const data::BuildSettings& settings);

}  // namespace ostro::prepare
