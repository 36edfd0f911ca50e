// What to say, and to advise, where a store cannot be read: a store that is damaged must be made anew, one
// that a network or a disk keeps back must not.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"

namespace ostro::data {

// Which store it is.
struct StoreName {
  std::string folder;               // of its ledger
  std::string levanter_cache = {};  // StoreLedger::levanter_cache
  bool in_parts = false;            // the rows are in other folders
};

// Whether the error says that what is stored is wrong or gone.
bool is_damage(const Error& error);

// An error of reading one of the store's arrays, with the advice for that store when it is damage, else with
// the array's and the store's name.
Error array_error(const StoreName& store, std::string_view array, const Error& error);

// The same of a file in the ledger's folder, which is of ours whatever the arrays are.
Error record_error(const StoreName& store, std::string_view file, const Error& error);

// The same of an unfinished store, which can be begun anew.
Error unfinished_error(const std::string& folder, const Error& error);

}  // namespace ostro::data
