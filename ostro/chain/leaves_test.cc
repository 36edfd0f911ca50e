#include "ostro/chain/leaves.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ostro/chain/leaf_file.h"
#include "ostro/io/files/memory_file_system.h"

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

TEST_CASE("leaves.jsonl keeps the leaves of steps, and is cut where a run goes on") {
  io::MemoryFileSystem fs;
  check_ok(cut_leaves(fs, "leaves.jsonl", 0));
  const std::string print(64, 'a');
  const auto of_step = [&](int64_t step) {
    return std::vector<LeafRecord>{{0, 0.5 * static_cast<double>(step), print}, {1, 3.0, print}};
  };
  auto writer = LeafWriter::resume(fs, "leaves.jsonl", 0);
  REQUIRE(writer.ok());
  for (int64_t step = 1; step <= 4; ++step) check_ok(writer->append(step, of_step(step)));
  const std::string whole = *fs.read_file("leaves.jsonl");
  CHECK(whole.substr(0, whole.find('\n')) ==
        fmt::format(R"({{"gradients":["{}","{}"],"losses":["0x1p-1","0x1.8p+1"],"step":1}})", print, print));
  for (int64_t step = 1; step <= 4; ++step)
    CHECK(leaves_root(*read_leaves(fs, "leaves.jsonl", step)) == leaves_root(of_step(step)));
  CHECK(read_leaves(fs, "leaves.jsonl", 5).error().code() == ErrorCode::kNotFound);
  CHECK(read_leaves(fs, "none", 1).error().code() == ErrorCode::kNotFound);
  // Wherever the file ends: what is left are whole lines, and what follows them is written again.
  for (size_t end = 0; end <= whole.size(); ++end) {
    *fs.content("leaves.jsonl") = whole.substr(0, end);
    const int64_t lines =
        std::min<int64_t>(2, std::count(whole.begin(), whole.begin() + static_cast<int64_t>(end), '\n'));
    auto again = LeafWriter::resume(fs, "leaves.jsonl", 2);
    REQUIRE(again.ok());
    for (int64_t step = lines + 1; step <= 4; ++step) check_ok(again->append(step, of_step(step)));
    CHECK(*fs.read_file("leaves.jsonl") == whole);
  }
  // Without fingerprints.
  CHECK(leaves_line(7, records(2)) == R"({"losses":["0x1p+0","0x1p+1"],"step":7})");
}

}  // namespace
}  // namespace ostro::chain
