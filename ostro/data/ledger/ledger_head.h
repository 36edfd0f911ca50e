// The values of a ledger.json but for the lists of its source files.
#pragma once

#include <string>

#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// Fails with kUnsupported, naming both, where the format of the ledger at `path` is none that is read here.
Status check_ledger_format(const std::string& format, const std::string& path);

// Out of the JSON of the ledger at `path`, whose format was checked and whose lists may be empty: files is
// empty, and has_files false. Hashes are not looked at. kCorrupt names the path and what is wrong.
Result<StoreLedger> read_ledger_head(const std::string& text, const std::string& path);

}  // namespace ostro::data
