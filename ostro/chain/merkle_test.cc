#include "ostro/chain/merkle.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ostro::chain {
namespace {

std::vector<LeafRecord> records(int64_t n) {
  std::vector<LeafRecord> out;
  for (int64_t i = 0; i < n; ++i) out.push_back({i, std::ldexp(1.0, static_cast<int>(i)), {}});
  return out;
}

std::vector<Sha256Digest> leaf_hashes(int64_t n) {
  std::vector<Sha256Digest> out;
  for (const LeafRecord& record : records(n)) out.push_back(merkle_leaf(leaf_data(record)));
  return out;
}

TEST_CASE("Merkle roots equal those computed in Python") {
  CHECK(leaves_root(records(0)) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(leaves_root(records(1)) == "4faacc9fd934f0d04b1583e252f8a2efefb94813a22f7a8091851df1894a1e4c");
  CHECK(leaves_root(records(2)) == "940862973d64569d8e6b4b3d90233a0fbd4c3d75f6eb159ee8fbcb5f03050470");
  CHECK(leaves_root(records(3)) == "c216e790eadf8807b3596978ba14e48e1ed5753e6074917fa424bcb5cfdb2d14");
  CHECK(leaves_root(records(5)) == "c7c0bffc4991c788102ea95b57cef48e82c7a00ce412b856642431813b2b6d52");
  CHECK(leaves_root(records(8)) == "b785cb5c8399e49899d18eb87740f847c10059b40a20d396b3a5beb766b55e56");
  const LeafRecord with_gradient{0, 1.0, "00112233445566778899aabbccddeeff"};
  CHECK(leaf_data(with_gradient) ==
        R"({"gradient":"00112233445566778899aabbccddeeff","leaf":0,"loss":"0x1p+0"})");
  CHECK(leaves_root({&with_gradient, 1}) ==
        "14202cbc45a23b9e4bbda48ec5c7fa3822b472041e892acf94f2b29b553dacce");
}

TEST_CASE("a path proves one leaf, and no other leaf, place or number of leaves") {
  for (int64_t n : {1, 2, 3, 5, 8, 13}) {
    const std::vector<Sha256Digest> leaves = leaf_hashes(n);
    const Sha256Digest root = merkle_root(leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const std::vector<Sha256Digest> path = merkle_path(leaves, i);
      CHECK(merkle_proves(leaves[i], i, leaves.size(), path, root));
      for (size_t j = 0; j < leaves.size(); ++j) {
        if (j == i) continue;
        CHECK(!merkle_proves(leaves[j], i, leaves.size(), path, root));
        CHECK(!merkle_proves(leaves[i], j, leaves.size(), path, root));
      }
      for (size_t k = 0; k < path.size(); ++k) {
        std::vector<Sha256Digest> damaged = path;
        damaged[k][31] ^= 1;
        CHECK(!merkle_proves(leaves[i], i, leaves.size(), damaged, root));
        damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(k));
        CHECK(!merkle_proves(leaves[i], i, leaves.size(), damaged, root));
      }
    }
  }
}

}  // namespace
}  // namespace ostro::chain
