#include "ostro/chain/leaves.h"

#include <fmt/core.h>

#include <vector>

#include "ostro/base/check.h"
#include "ostro/base/merkle.h"
#include "ostro/chain/canonical.h"

namespace ostro::chain {

std::string leaf_data(const LeafRecord& record) {
  const std::string gradient = record.gradient ? fmt::format("\"gradient\":\"{}\",", *record.gradient) : "";
  return fmt::format("{{{}\"leaf\":{},\"loss\":\"{}\"}}", gradient, record.leaf, hex_float(record.loss));
}

std::string leaves_root(std::span<const LeafRecord> records) {
  std::vector<Sha256Digest> leaves;
  for (const LeafRecord& record : records) {
    OSTRO_CHECK(record.leaf == static_cast<int64_t>(leaves.size()), "leaf {} at place {}", record.leaf,
                leaves.size());
    leaves.push_back(merkle_leaf(leaf_data(record)));
  }
  return to_hex(merkle_root(leaves));
}

}  // namespace ostro::chain
