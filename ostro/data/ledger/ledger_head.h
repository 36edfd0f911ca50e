// read_ledger_head: parses a ledger.json without the lists of its source files. Pure functions.
#pragma once

#include <string>

#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// kUnsupported, naming the path and the format, when this format cannot be read.
Status check_ledger_format(const std::string& format, const std::string& path);

// Reads everything except the files from the JSON of the ledger at `path`: `files` is empty and has_files
// false. The format was checked before, and the lists in `text` may be empty. Does not check hashes. kCorrupt
// names the path and what is wrong.
Result<StoreLedger> read_ledger_head(const std::string& text, const std::string& path);

}  // namespace ostro::data
