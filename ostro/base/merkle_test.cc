#include "ostro/base/merkle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace ostro {
namespace {

std::vector<Sha256Digest> leaf_hashes(size_t n) {
  std::vector<Sha256Digest> out;
  for (size_t i = 0; i < n; ++i) out.push_back(merkle_leaf(std::to_string(i)));
  return out;
}

bool proves(const Sha256Digest& leaf_hash, size_t leaf, size_t leaves, std::span<const Sha256Digest> path,
            const Sha256Digest& root) {
  return merkle_root_of_path(leaf_hash, leaf, leaves, path) == root;
}

TEST_CASE("a path proves one leaf, and no other leaf, place or number of leaves") {
  for (size_t n : {1, 2, 3, 5, 8, 13}) {
    const std::vector<Sha256Digest> leaves = leaf_hashes(n);
    const Sha256Digest root = merkle_root(leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const std::vector<Sha256Digest> path = merkle_path(leaves, i);
      CHECK(proves(leaves[i], i, leaves.size(), path, root));
      for (size_t j = 0; j < leaves.size(); ++j) {
        if (j == i) continue;
        CHECK(!proves(leaves[j], i, leaves.size(), path, root));
        CHECK(!proves(leaves[i], j, leaves.size(), path, root));
      }
      for (size_t k = 0; k < path.size(); ++k) {
        std::vector<Sha256Digest> damaged = path;
        damaged[k][31] ^= 1;
        CHECK(!proves(leaves[i], i, leaves.size(), damaged, root));
        damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(k));
        CHECK(!proves(leaves[i], i, leaves.size(), damaged, root));
      }
    }
  }
}

TEST_CASE("the roots of aligned blocks are the leaves of a tree with the same root, and paths join") {
  constexpr size_t kBlock = 4;
  for (size_t n = 1; n <= 33; ++n) {
    const std::vector<Sha256Digest> leaves = leaf_hashes(n);
    const std::span<const Sha256Digest> all = leaves;
    std::vector<Sha256Digest> blocks;
    for (size_t i = 0; i < n; i += kBlock)
      blocks.push_back(merkle_root(all.subspan(i, std::min(kBlock, n - i))));
    CHECK(merkle_root(blocks) == merkle_root(leaves));
    for (size_t i = 0; i < n; ++i) {
      const size_t begin = i / kBlock * kBlock;
      std::vector<Sha256Digest> path =
          merkle_path(all.subspan(begin, std::min(kBlock, n - begin)), i - begin);
      for (const Sha256Digest& above : merkle_path(blocks, i / kBlock)) path.push_back(above);
      CHECK(path == merkle_path(leaves, i));
    }
  }
}

}  // namespace
}  // namespace ostro
