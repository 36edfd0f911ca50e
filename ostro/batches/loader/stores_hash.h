// stores_hash: the hash of the data of a training, as its chain has it. A pure function.
#pragma once

#include <map>
#include <string>

namespace ostro::batches {

// `hashes` are those of the token stores, by component; of data without components "" has that of the one
// store, which is the result.
std::string stores_hash(const std::map<std::string, std::string>& hashes);

}  // namespace ostro::batches
