// Stores of the rows that verdicts take: what is in them, and what their hash depends on.
#include <doctest/doctest.h>

#include "ostro/data/rows/row_verdicts.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

// Verdicts on the corpus of write_corpus: every third line and one text file are left out.
RowVerdicts some_verdicts(io::FileSystem& fs, const DataOptions& options, const std::string& reason) {
  RowVerdicts out;
  const auto found = find_sources(fs, source_places(options, components_of(options)[0]));
  REQUIRE(found.ok());
  for (const SourceFile& source : found->files) {
    FileVerdicts file{.file = source.path, .sha256 = sha256_hex(*fs.read_file(source.path)), .rows = 1};
    if (source.path == "corpus/lines.jsonl") {
      file.rows = 60;
      for (int64_t row = 3; row <= 60; row += 3) file.said.push_back({.row = row, .drop = reason});
      file.said.insert(file.said.begin(), {.row = 1, .value = 0.25});
    } else if (source.path == "corpus/text/07.txt") {
      file.said.push_back({.row = 1, .drop = "words", .value = 54.0});
    }
    out.files.push_back(std::move(file));
  }
  return out;
}

}  // namespace

TEST_CASE(
    "verdicts: a store has the rows that are taken, after a kill, too; reasons are counted and change no "
    "hash") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  const auto all = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE(all.ok());
  const RowVerdicts verdicts = some_verdicts(fs, options, "quality");
  check_ok(write_row_verdicts(fs, "rows.jsonl", verdicts));
  CHECK(*read_row_verdicts(fs, "rows.jsonl") == verdicts);
  options.rows = "rows.jsonl";
  options.cache_dir = "some";
  build_half(fs, options, small_settings());
  const auto some = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE_MESSAGE(some.ok(), some.error().message());
  CHECK(some->split(Split::kTrain).rows + some->split(Split::kValidation).rows ==
        all->split(Split::kTrain).rows + all->split(Split::kValidation).rows - 21);
  CHECK(some->hash() == read_ledger(fs, "some-whole")->hash());
  CHECK(some->hash() != all->hash());
  int64_t counted = 0;
  for (const FileLedger& file : read_ledger(fs, "some")->files)
    for (const auto& [reason, rows] : file.left_out) counted += reason == "quality" ? 100 * rows : rows;
  CHECK(counted == 2001);
  check_ok(verify_store(fs, "some"));
  // No row that is left out is in the store.
  const auto store = open_store(fs, options);
  REQUIRE(store.ok());
  for (const Split split : kSplits)
    for (int64_t row = 0; row < (*store)->split(split).rows(); ++row) {
      const RowSource source = *(*store)->split(split).source(row);
      CHECK(source.file != "corpus/text/07.txt");
      CHECK((source.file != "corpus/lines.jsonl" || source.document % 3 != 0));
    }
  // Another reason, the same rows.
  check_ok(write_row_verdicts(fs, "rows.jsonl", some_verdicts(fs, options, "near_duplicate")));
  options.cache_dir = "again";
  CHECK(build_store(fs, options, test_tokenizer(), small_settings())->hash() == some->hash());
}

TEST_CASE("verdicts: an existing store is refused with other ones") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  RowVerdicts verdicts = some_verdicts(fs, options, "quality");
  check_ok(write_row_verdicts(fs, "rows.jsonl", verdicts));
  options.rows = "rows.jsonl";
  REQUIRE(build_store(fs, options, test_tokenizer(), small_settings()).ok());
  REQUIRE(build_store(fs, options, test_tokenizer(), small_settings()).ok());
  verdicts.files[0].said.back().row -= 1;
  check_ok(write_row_verdicts(fs, "rows.jsonl", verdicts));
  const auto other = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message().find("data.rows, SHA-256 of the rows that are left out: the store has ") !=
        std::string::npos);
}
