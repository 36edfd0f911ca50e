// Rows are shown even if their source files are gone or changed.
#include "ostro/batches/loader/row_places.h"

#include <doctest/doctest.h>

#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

TEST_CASE("row places: what cannot be read is unknown, and files are hashed once") {
  io::MemoryFileSystem memory;
  std::string lines;
  for (int i = 0; i < 9; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", words(i, 6));
  check_ok(memory.make_dirs("in"));
  write(memory, "in/a.jsonl", lines);
  DataOptions options = corpus_options("in");
  options.validation_fraction = 0;
  REQUIRE(build_store(memory, options, test_tokenizer(), small_settings()).ok());
  const auto store = *TokenStore::open(memory, "in-cache");
  const RowSource row = *store->split(Split::kTrain).source(7);
  const auto place_of = [&](io::FileSystem& fs, SourceCheck& files, const FileLedger* ledger) {
    RowSource source = row;
    source.ledger = ledger;
    return find_rows(fs, {&source, 1}, {}, files)[0];
  };
  write(memory, "in/a.jsonl", lines);  // another time
  FileLedger other = *row.ledger;      // of another store
  io::CountingFileSystem counting(memory);
  SourceCheck all(counting), small(counting, static_cast<int64_t>(lines.size()) - 1);
  const RowPlace known = place_of(counting, all, row.ledger);
  CHECK(lines.substr(static_cast<size_t>(known.begin), 9) == "{\"text\": ");
  CHECK(known.unknown.empty());
  const int64_t opens = counting.counts().opens;
  CHECK(place_of(counting, all, &other).begin == known.begin);
  CHECK(counting.counts().opens == opens + 1);  // to find the row
  other.sha256 = std::string(64, '0');
  CHECK(place_of(counting, all, &other).unknown == "in/a.jsonl changed since the store was built");
  CHECK(counting.counts().opens == opens + 1);
  CHECK(place_of(counting, small, row.ledger).unknown.find("another time") != std::string::npos);
  CHECK(counting.counts().opens == opens + 1);

  io::FaultyFileSystem faulty(memory);
  int64_t failed = 0;
  for (;; ++failed) {
    faulty.inject_read_error(failed);
    SourceCheck files(faulty);
    const RowPlace place = place_of(faulty, files, row.ledger);
    if (faulty.reads() <= failed) break;  // none failed
    CHECK_FALSE(place.has_bytes());
    CHECK(place.unknown.find("in/a.jsonl") != std::string::npos);
  }
  CHECK(failed >= 5);  // stat, and twice open and read
}
