// Merkle trees: one hash in a chain entry stands for all leaves of a step, and a single leaf can be checked
// against it without the others.
//
// The tree is built as in RFC 6962, section 2.1. The hash of a leaf is SHA-256(0x00 || data). The hash of an
// inner node is SHA-256(0x01 || left || right). On each level, neighbours are paired; a last node without a
// partner moves up unchanged. The root of no leaves is the SHA-256 of the empty string.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/sha256.h"

namespace ostro::chain {

// What the chain records of one leaf of a step.
struct LeafRecord {
  int64_t leaf = 0;  // number of the leaf within the step, over all workers
  double loss = 0;   // the leaf's loss sum
  // Fingerprint of the leaf's gradients in hexadecimal. Only with chain.leaf_gradients.
  std::optional<std::string> gradient;
};

// The data that is hashed for a leaf, as canonical JSON: {"gradient":"...","leaf":0,"loss":"0x1.8p+1"}. There
// is no "gradient" when chain.leaf_gradients is off.
std::string leaf_data(const LeafRecord& record);

Sha256Digest merkle_leaf(std::string_view data);
Sha256Digest merkle_root(std::span<const Sha256Digest> leaves);

// The Merkle root of the records, in hexadecimal. Their leaf numbers must be 0, 1, 2, ... in this order.
std::string leaves_root(std::span<const LeafRecord> records);

// The proof for leaf number `leaf`: the hashes of its siblings on the way to the root, lowest level first. A
// level where the node has no sibling adds no hash.
std::vector<Sha256Digest> merkle_path(std::span<const Sha256Digest> leaves, size_t leaf);
// Whether `path` proves that the leaf with this hash and number belongs to the tree of `leaves` leaves with
// this root.
bool merkle_proves(const Sha256Digest& leaf_hash, size_t leaf, size_t leaves,
                   std::span<const Sha256Digest> path, const Sha256Digest& root);

}  // namespace ostro::chain
