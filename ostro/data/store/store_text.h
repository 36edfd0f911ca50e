// place_text, counts_text: lines about a token store for a person. Pure functions.
#pragma once

#include <span>
#include <string>

#include "ostro/data/ledger/ledger.h"

namespace ostro::data {

// A line that says where the rows of a store are; `files` counts its source files.
std::string place_text(const std::string& cache_dir, const StoreLedger& ledger, const std::string& files);

// Lines about the documents that were skipped or repaired; empty when there are none.
std::string counts_text(std::span<const FileLedger> files);

}  // namespace ostro::data
