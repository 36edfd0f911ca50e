#include "ostro/data/ledger/chunk_table.h"

#include <doctest/doctest.h>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::data {
namespace {

TEST_CASE("chunk table: one of another store, or of another place, is refused by name") {
  io::MemoryFileSystem fs;
  prepare::write_corpus(fs, "corpus");
  DataOptions options = prepare::corpus_options("corpus");
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  const std::string path = chunk_tables_path(options.cache_dir), own = *fs.read_file(path);
  options.cache_dir = "other";
  options.enforce_eos = false;
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings()).ok());
  const std::string other = *fs.read_file(chunk_tables_path("other"));
  REQUIRE(own.size() == other.size());
  const std::string pages_swapped = own.substr(4096, 4096) + own.substr(0, 4096) + own.substr(8192);
  for (const std::string& content : {other, pages_swapped}) {
    prepare::write(fs, path, content);
    const auto store = TokenStore::open(fs, "corpus-cache");
    REQUIRE(store.ok());
    std::vector<int32_t> tokens(4);
    const Status status = (*store)->split(Split::kTrain).read(0, tokens);
    CHECK(status.error().code() == ErrorCode::kCorrupt);
    CHECK(status.error().message().find("corpus-cache/chunks.table") != std::string::npos);
  }
  prepare::write(fs, path, own);
  check_ok(prepare::verify_store(fs, "corpus-cache"));
}

}  // namespace
}  // namespace ostro::data
