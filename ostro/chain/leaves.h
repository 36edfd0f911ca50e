// LeafRecord, leaves_root: the records of all leaves (microbatches) of a step, for which one hash stands in
// the step's entry (base/merkle.h). Values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ostro::chain {

// The record of one leaf of a step.
struct LeafRecord {
  int64_t leaf = 0;  // number of the leaf within the step, over all workers
  double loss = 0;   // the leaf's loss sum
  // Fingerprint of the leaf's gradients in hexadecimal. Only with chain.leaf_gradients.
  std::optional<std::string> gradient;
};

// The data that is hashed for a leaf, as canonical JSON: {"gradient":"...","leaf":0,"loss":"0x1.8p+1"}. There
// is no "gradient" when chain.leaf_gradients is off.
std::string leaf_data(const LeafRecord& record);

// The Merkle root of the records, in hexadecimal. Their leaf numbers must be 0, 1, 2, ... in this order.
std::string leaves_root(std::span<const LeafRecord> records);

}  // namespace ostro::chain
