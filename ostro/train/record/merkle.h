// Merkle roots, so that a chain entry commits to every leaf of a step and one leaf can be audited alone.
//
// The tree is that of RFC 6962, section 2.1: a leaf's hash is SHA-256(0x00 || data), a node's is
// SHA-256(0x01 || left || right); level by level neighbours are paired, and a node without a neighbour goes
// up unchanged. The root over no leaves is SHA-256 of nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/sha256.h"

namespace ostro::train {

// What is known of one leaf of a step.
struct LeafRecord {
  int64_t leaf = 0;  // its global number within the step
  double loss = 0;   // the leaf's loss sum
  // Fingerprint of the leaf's gradients in hexadecimal, when chain.leaf_gradients is on.
  std::optional<std::string> gradient;
};

// The data of a leaf: canonical JSON, {"gradient":"...","leaf":0,"loss":"0x1.8p+1"} (no gradient when off).
std::string leaf_data(const LeafRecord& record);

Sha256Digest merkle_leaf(std::string_view data);
Sha256Digest merkle_root(std::span<const Sha256Digest> leaves);

// The root over records in the order of their leaf numbers, in hexadecimal; leaf numbers must be 0, 1, ...
std::string leaves_root(std::span<const LeafRecord> records);

// The hashes that lead from leaf number `leaf` of `leaves` to the root, lowest level first; levels at which
// the node goes up unchanged give none.
std::vector<Sha256Digest> merkle_path(std::span<const Sha256Digest> leaves, size_t leaf);
// Whether a leaf's hash, its number, the number of leaves and its path lead to the root.
bool merkle_proves(const Sha256Digest& leaf_hash, size_t leaf, size_t leaves,
                   std::span<const Sha256Digest> path, const Sha256Digest& root);

}  // namespace ostro::train
