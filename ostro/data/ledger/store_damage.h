// Store errors: add advice to errors of stores that cannot be read.
//
// A damaged store must be built again. If only the network or the disk failed, it must not. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::data {

// How errors name a store.
struct StoreName {
  std::string folder;               // folder of the ledger
  std::string levanter_cache = {};  // StoreLedger::levanter_cache
  bool in_parts = false;            // its rows are in the folders of its parts
};

// Whether the error means that stored data is wrong or missing.
bool is_damage(const Error& error);

// Extends an error of reading an array of the store: with advice when it is damage, else with the names of
// the array and the store.
Error array_error(const StoreName& store, std::string_view array, const Error& error);

// The same for a file in the ledger's folder. (Such a file is always written by us, even when the arrays are
// a Levanter cache.)
Error record_error(const StoreName& store, std::string_view file, const Error& error);

// The same for an unfinished store, whose build can be started again.
Error unfinished_error(const std::string& folder, const Error& error);

}  // namespace ostro::data
