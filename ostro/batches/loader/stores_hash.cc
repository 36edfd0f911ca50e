#include "ostro/batches/loader/stores_hash.h"

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"

namespace ostro::batches {

std::string stores_hash(const std::map<std::string, std::string>& hashes) {
  if (const auto only = hashes.find(""); only != hashes.end()) return only->second;
  return sha256_hex(nlohmann::json(hashes).dump());
}

}  // namespace ostro::batches
