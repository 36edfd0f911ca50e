// scan_levanter_cache: reads a whole Levanter cache once, to make our ledger for it.
#pragma once

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/levanter/levanter_ledger.h"

namespace ostro::data {

// Fills in the splits and parts of `ledger`, whose levanter_cache and preprocessing are already set. `told`
// is the cache's own ledger. Errors: as check_levanter_cache.
Status scan_levanter_cache(io::FileSystem& fs, const LevanterLedger& told,
                           const tokenizer::Tokenizer& tokenizer, const BuildSettings& settings,
                           StoreLedger& ledger);

}  // namespace ostro::data
