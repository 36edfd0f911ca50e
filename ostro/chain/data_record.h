// DataRecord: what the chain of a run says of its data: the genesis, and each amend that adds components
// (docs/reference/formats/chain.md, "Amends"). Values, and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"

namespace ostro::chain {

// The data of the steps behind an entry.
struct DataRecord {
  int64_t step = 0;                          // steps done when it began to hold
  std::string hash;                          // of all stores
  std::map<std::string, std::string> roots;  // component -> Merkle root of its rows; empty in format 1
  std::set<std::string> components;          // names; without data.components the only one is ""
};

// The names in data.components of a canonical config; {""} without components. A text that is no config gives
// {""}, too.
std::set<std::string> component_names(const std::string& config);

// The records in the order of the chain: first that of the genesis, then one for each amend with other data.
// A later record has all components of the one before. Members of an amend that have another form than the
// format's are passed over: audit::periods_of refuses them.
std::vector<DataRecord> data_records(const Chain& chain);

}  // namespace ostro::chain
