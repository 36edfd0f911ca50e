#include "ostro/data/arrays/ids.h"

#include <doctest/doctest.h>

#include <vector>

namespace ostro::data {
namespace {

// Stores `ids` as T, keeps and copies them, and gives the result. Nothing when they are refused.
template <typename T>
std::vector<int32_t> there_and_back(ElementType type, const std::vector<int64_t>& ids, int64_t vocab_size) {
  const std::vector<T> stored(ids.begin(), ids.end());
  std::vector<std::byte> kept(ids.size() * element_bytes(kept_ids(vocab_size)));
  const bool all = keep_ids(type, std::as_bytes(std::span(stored)), vocab_size, kept);
  if (sizeof(T) == element_bytes(kept_ids(vocab_size))) {  // in place the same
    std::vector<T> own = stored;
    CHECK(keep_ids(type, std::as_bytes(std::span(own)), vocab_size, std::as_writable_bytes(std::span(own))) ==
          all);
    CHECK(own == stored);
  }
  if (!all) return {};
  std::vector<int32_t> out(ids.size());
  copy_kept_ids(kept_ids(vocab_size), kept, out);
  return out;
}

TEST_CASE("ids: kept in two bytes or four they come back, and the first beyond the vocabulary is noticed") {
  CHECK(kept_ids(65'536) == ElementType::kUint16);
  CHECK(kept_ids(65'537) == ElementType::kInt32);
  for (const int64_t vocab : {200, 256, 50'257, 65'536, 65'537, 128'256, 0x7fffffff}) {
    CAPTURE(vocab);
    std::vector<int64_t> ids(1000);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * 7919 % vocab;
    ids[500] = vocab - 1;
    const std::vector<int32_t> expected(ids.begin(), ids.end());
    const auto check = [&](const std::vector<int64_t>& in, const std::vector<int32_t>& out) {
      CHECK(there_and_back<int64_t>(ElementType::kInt64, in, vocab) == out);
      CHECK(there_and_back<uint64_t>(ElementType::kUint64, in, vocab) == out);
      CHECK(there_and_back<int32_t>(ElementType::kInt32, in, vocab) == out);
      CHECK(there_and_back<uint32_t>(ElementType::kUint32, in, vocab) == out);
      if (vocab < 65'536) CHECK(there_and_back<uint16_t>(ElementType::kUint16, in, vocab) == out);
    };
    check(ids, expected);
    for (const size_t at : {0, 333, 999}) {
      std::vector<int64_t> bad = ids;
      bad[at] = vocab;
      check(bad, {});
      bad[at] = -1;
      check(bad, {});
      bad[at] = int64_t{1} << 40 | 5;
      CHECK(there_and_back<int64_t>(ElementType::kInt64, bad, vocab).empty());
    }
  }
}

}  // namespace
}  // namespace ostro::data
