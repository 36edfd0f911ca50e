#include "ostro/chain/leaves.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace ostro::chain {
namespace {

std::vector<LeafRecord> records(int64_t n) {
  std::vector<LeafRecord> out;
  for (int64_t i = 0; i < n; ++i) out.push_back({i, std::ldexp(1.0, static_cast<int>(i)), {}});
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

}  // namespace
}  // namespace ostro::chain
