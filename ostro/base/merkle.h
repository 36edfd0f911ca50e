// merkle_root, merkle_path, merkle_root_of_path: Merkle trees. One hash stands for a list of leaves, and a
// single leaf can be checked against it without the others.
//
// The tree is built as in RFC 6962, section 2.1. The hash of a leaf is SHA-256(0x00 || data). The hash of an
// inner node is SHA-256(0x01 || left || right). On each level, neighbours are paired; a last node without a
// partner moves up unchanged. The root of no leaves is the SHA-256 of the empty string. So 2^k leaves that
// begin at a multiple of 2^k, or fewer at the end, are a tree of their own inside the whole, and the root of
// their roots is the root of all. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/base/sha256.h"

namespace ostro {

Sha256Digest merkle_leaf(std::string_view data);
Sha256Digest merkle_root(std::span<const Sha256Digest> leaves);

// The proof for leaf number `leaf`: the hashes of its siblings on the way to the root, lowest level first. A
// level where the node has no sibling adds no hash.
std::vector<Sha256Digest> merkle_path(std::span<const Sha256Digest> leaves, size_t leaf);

// The root of the tree of `leaves` leaves in which `path` proves the leaf with this hash and number. Nothing
// where there is no such leaf, or the path has another length.
std::optional<Sha256Digest> merkle_root_of_path(const Sha256Digest& leaf_hash, size_t leaf, size_t leaves,
                                                std::span<const Sha256Digest> path);

}  // namespace ostro
