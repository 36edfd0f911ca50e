// Weights of the tokens in caches of Levanter: which are valid, and what readers get.
#include "ostro/data/levanter/levanter_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include "ostro/data/levanter/cache_for_test.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::data::levanter_for_test;

namespace {

template <typename T>
constexpr ElementType element_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::kFloat32;
  if constexpr (std::is_same_v<T, uint8_t>) return ElementType::kUint8;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kInt32;
  if constexpr (std::is_same_v<T, uint64_t>) return ElementType::kUint64;
  return ElementType::kInt64;
}

// Writes a cache with weights of this kind, one for every token or row, and checks it.
template <typename T>
Result<StoreLedger> check_weighted(io::FileSystem& fs, const Cache& cache, WeightKind kind,
                                   const std::vector<T>& weights) {
  cache.write_to(fs, "theirs");
  const std::string folder = std::string("theirs/train/") + weight_kind_name(kind);
  check_ok(fs.remove_all(folder));
  auto writer = ArrayWriter::create(fs, folder + "/data", {.chunk = 32, .shard = 128}, element_of<T>());
  REQUIRE(writer.ok());
  check_ok(writer->append_bytes(std::as_bytes(std::span(weights))));
  REQUIRE(writer->commit().ok());
  std::vector<int64_t> ends = cache.ends;
  if (kind == WeightKind::kSourcesLen) std::iota(ends.begin() + 1, ends.end(), int64_t{1});
  cache.write_array(fs, folder + "/offsets", ends, ElementType::kInt64);
  Preprocessing p = wanted();
  p.fields = store_fields(kind);
  return check_levanter_cache(fs, "theirs", "ours/chat", p, test_tokenizer(), "tokenizer.json",
                              small_settings(2));
}

// Checks that weights are refused when all are 1 except for one after the first chunk, which is `bad`. Errors
// show it as `shown`.
template <typename T>
void check_refused(const Cache& cache, WeightKind kind, T bad, const std::string& shown,
                   const std::string& allowed) {
  const size_t count = kind == WeightKind::kSourcesLen ? cache.ends.size() - 1 : cache.ids.size();
  std::vector<T> weights(count, T{1});
  weights[40] = bad;
  io::MemoryFileSystem fs;
  const auto result = check_weighted(fs, cache, kind, weights);
  const std::string name = weight_kind_name(kind);
  const std::string of = fmt::format("{} of {}: {}", name, element_name(element_of<T>()), shown);
  REQUIRE_MESSAGE(!result.ok(), of);
  CHECK_MESSAGE(result.error().code() == ErrorCode::kCorrupt, of);
  const std::string found = result.error().message();
  CHECK_MESSAGE(found.find(fmt::format("theirs/train/{}/data: element 40 is {}; {}; write the cache anew",
                                       name, shown, allowed)) == 0,
                found);
  CHECK_FALSE(*fs.exists(ledger_path("ours/chat")));
}

// What readers get for these weights, which must be valid. Reads them at once and in small pieces.
template <typename T>
std::vector<float> weights_read(const Cache& cache, WeightKind kind, const std::vector<T>& weights) {
  io::MemoryFileSystem fs;
  const auto result = check_weighted(fs, cache, kind, weights);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message()));
  check_ok(verify_store(fs, "ours/chat"));
  const auto store = *TokenStore::open(fs, "ours/chat");
  const TokenStream& stream = store->split(Split::kTrain);
  std::vector<float> all(cache.ids.size());
  check_ok(stream.read_weights(0, all));
  for (size_t first = 0; first + 5 <= all.size(); ++first) {
    std::vector<float> piece(5);
    check_ok(stream.read_weights(static_cast<int64_t>(first), piece));
    CHECK(std::equal(piece.begin(), piece.end(), all.begin() + static_cast<ptrdiff_t>(first)));
  }
  return all;
}

// So many of the values, over and over.
template <typename T>
std::vector<T> repeated(const std::vector<T>& values, size_t count) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = values[i % values.size()];
  return all;
}

}  // namespace

TEST_CASE("levanter cache: loss weights are finite and not below 0") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  const WeightKind kind = WeightKind::kLossWeights;
  const std::string allowed = "loss weights are finite numbers of 0 or more";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  check_refused(cache, kind, std::numeric_limits<float>::quiet_NaN(), "nan", allowed);
  check_refused(cache, kind, kInfinity, "inf", allowed);
  check_refused(cache, kind, -kInfinity, "-inf", allowed);
  check_refused(cache, kind, -0.5f, "-0.5", allowed);
  check_refused(cache, kind, int32_t{-1}, "-1", allowed);
  check_refused(cache, kind, int64_t{-2}, "-2", allowed);

  const size_t tokens = cache.ids.size();
  const auto floats = repeated<float>({0.0f, 0.25f, -0.0f, 1.0f, 1000.5f}, tokens);
  CHECK(weights_read(cache, kind, floats) == floats);
  const auto integers = repeated<int32_t>({0, 1, 3}, tokens);
  CHECK(weights_read(cache, kind, integers) == std::vector<float>(integers.begin(), integers.end()));
}

TEST_CASE("levanter cache: masks are 0 or 1") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  const WeightKind kind = WeightKind::kAssistantMasks;
  const std::string allowed = "masks are 0 or 1";
  check_refused(cache, kind, int32_t{2}, "2", allowed);
  check_refused(cache, kind, int32_t{-1}, "-1", allowed);
  check_refused(cache, kind, uint8_t{255}, "255", allowed);
  check_refused(cache, kind, 0.5f, "0.5", allowed);
  check_refused(cache, kind, std::numeric_limits<float>::quiet_NaN(), "nan", allowed);

  const size_t tokens = cache.ids.size();
  const auto floats = repeated<float>({0.0f, 1.0f, 1.0f}, tokens);
  CHECK(weights_read(cache, kind, floats) == floats);
  CHECK(weights_read(cache, kind, repeated<int32_t>({0, 1, 1}, tokens)) == floats);
  CHECK(weights_read(cache, kind, repeated<uint8_t>({0, 1, 1}, tokens)) == floats);

  // Of shards, the one with the mask is named.
  io::MemoryFileSystem fs;
  Cache first, second;
  for (int i = 0; i < 5; ++i) first.add(i), second.add(i);
  second.masks[2] = 2;
  first.write_arrays(fs, "theirs/train/a");
  second.write_arrays(fs, "theirs/train/b");
  write(fs, "theirs/train/shard_ledger.json", sharded_ledger({{"a", 5}, {"b", 5}}));
  const std::string found = refusal(fs);
  CHECK_MESSAGE(found.find("(in theirs/train/b/assistant_masks/data): element 27 is 2; masks are 0 or 1") !=
                    std::string::npos,
                found);
}

TEST_CASE("levanter cache: prompts have lengths, which may be beyond the ends of their rows") {
  Cache cache;
  for (int i = 0; i < 60; ++i) cache.add(i);
  const WeightKind kind = WeightKind::kSourcesLen;
  const std::string allowed = "lengths of prompts are whole numbers from 0 to 2^63 - 1";
  check_refused(cache, kind, int32_t{-1}, "-1", allowed);
  check_refused(cache, kind, INT64_MIN, "-9223372036854775808", allowed);
  check_refused(cache, kind, uint64_t{1} << 63, "9223372036854775808", allowed);
  check_refused(cache, kind, 1.5f, "1.5", allowed);
  check_refused(cache, kind, -1.0f, fmt::format("{}", -1.0f), allowed);
  check_refused(cache, kind, std::numeric_limits<float>::quiet_NaN(), "nan", allowed);
  check_refused(cache, kind, 0x1p63f, fmt::format("{}", 0x1p63f), allowed);

  const auto expected = [&cache](const std::vector<int64_t>& prompts) {
    std::vector<float> weights;
    for (size_t row = 0; row < prompts.size(); ++row) {
      const int64_t length = cache.ends[row + 1] - (row == 0 ? 0 : cache.ends[row]);
      for (int64_t i = 0; i < length; ++i) weights.push_back(i < prompts[row] ? 0.0f : 1.0f);
    }
    return weights;
  };
  const auto small = repeated<int64_t>({0, 2, 5, 100}, 60);
  CHECK(weights_read(cache, kind, small) == expected(small));
  CHECK(weights_read(cache, kind, std::vector<int32_t>(small.begin(), small.end())) == expected(small));
  CHECK(weights_read(cache, kind, std::vector<float>(small.begin(), small.end())) == expected(small));
  const auto large = repeated<int64_t>({INT64_MAX, 1, INT64_MAX - 3}, 60);
  CHECK(weights_read(cache, kind, large) == expected(large));
  CHECK(weights_read(cache, kind, std::vector<uint64_t>(large.begin(), large.end())) == expected(large));
}
