// A chunk is decoded once for all threads, and kept when it is read again.
#include "ostro/data/arrays/verified_array.h"

#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "ostro/io/files/counting_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::data {
namespace {

TEST_CASE("verified array: threads that want one chunk together decode it once") {
  io::MemoryFileSystem memory;
  prepare::write_corpus(memory, "corpus");
  const DataOptions options = prepare::corpus_options("corpus");
  REQUIRE(prepare::build_store(memory, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  io::CountingFileSystem fs(memory);
  const auto reads_of = [&](int threads) {
    const auto store = TokenStore::open(fs, options.cache_dir);
    REQUIRE(store.ok());
    fs.reset();
    std::barrier start(threads);
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&] {
        std::array<int32_t, 5> tokens;
        start.arrive_and_wait();
        check_ok((*store)->split(Split::kTrain).read(7, tokens));
      });
    all.clear();  // joins
    return fs.counts().reads;
  };
  const auto alone = reads_of(1);
  for (int round = 0; round < 20; ++round) CHECK(reads_of(8) == alone);
}

TEST_CASE("verified array: one much larger than the cache keeps what comes up again") {
  io::MemoryFileSystem memory;
  prepare::write_corpus(memory, "corpus");
  const DataOptions options = prepare::corpus_options("corpus");
  REQUIRE(prepare::build_store(memory, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  io::CountingFileSystem fs(memory);
  const auto cache = std::make_shared<ChunkCache>(512);  // four chunks of 64 ids of two bytes
  const auto store = TokenStore::open(fs, options.cache_dir, cache);
  REQUIRE(store.ok());
  const TokenStream& stream = (*store)->split(Split::kTrain);
  REQUIRE(stream.tokens() > 64 * 20);
  std::vector<int32_t> expected(static_cast<size_t>(stream.tokens()));
  check_ok((*TokenStore::open(fs, options.cache_dir))->split(Split::kTrain).read(0, expected));
  // Whether the file was read for a token of a chunk.
  const auto reads = [&](int64_t chunk) {
    fs.reset();
    int32_t token = 0;
    check_ok(stream.read(chunk * 64 + 3, std::span(&token, 1)));
    CHECK(token == expected[static_cast<size_t>(chunk * 64 + 3)]);
    return fs.counts().reads > 0;
  };
  for (int64_t chunk = 0; chunk < 6; ++chunk) {
    CHECK(reads(chunk));
    CHECK(!reads(chunk));  // of the last four
  }
  CHECK(cache->cost() == 0);
  CHECK(reads(0));  // the second time: it stays
  CHECK(cache->cost() == 128);
  for (int64_t chunk = 6; chunk < 20; ++chunk) CHECK(reads(chunk));
  CHECK(!reads(0));
}

}  // namespace
}  // namespace ostro::data
