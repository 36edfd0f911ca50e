// Stores of the rows that verdicts take: what is in them, and what their hash depends on.
#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/data/rows/row_verdicts.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/consolidate.h"
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

// A component of .jsonl files, whose verdicts are in `rows`.
DataOptions rows_options(const std::string& cache_dir, const std::vector<std::string>& train,
                         const std::string& rows, const std::vector<std::string>& held_out = {}) {
  DataOptions options;
  options.tokenizer = "tokenizer.json";
  options.cache_dir = "cache";
  ComponentOptions& component = options.components["c"];
  component.cache_dir = cache_dir;
  component.train_urls = train;
  component.validation_urls = held_out;
  if (!rows.empty()) component.rows = rows;
  return options;
}

void write_lines(io::FileSystem& fs, const std::string& path, int64_t first, int64_t count) {
  std::string lines;
  for (int64_t i = first; i < first + count; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", words(i, 9));
  check_ok(fs.make_dirs("in"));
  write(fs, path, lines);
}

// Verdicts that leave out these rows, by file in the order of the texts.
using Rows = std::vector<int64_t>;
RowVerdicts drop_rows(io::FileSystem& fs, const std::vector<std::pair<std::string, Rows>>& files) {
  RowVerdicts out;
  for (const auto& [path, rows] : files) {
    const std::string text = *fs.read_file(path);
    FileVerdicts file{
        .file = path, .sha256 = sha256_hex(text), .rows = std::count(text.begin(), text.end(), '\n')};
    for (const int64_t row : rows) file.said.push_back({.row = row, .drop = "words"});
    out.files.push_back(std::move(file));
  }
  return out;
}

Result<StoreLedger> build_rows(io::FileSystem& fs, const DataOptions& options, bool append = false) {
  BuildSettings settings = small_settings();
  settings.append = append;
  return build_store(fs, options, components_of(options)[0], test_tokenizer(), settings);
}

Result<StoreLedger> join_rows(io::FileSystem& fs, const DataOptions& options, JoinRows rows) {
  return consolidate_stores(fs, options, components_of(options)[0], test_tokenizer(), {"part-a", "part-b"},
                            rows, small_settings());
}

int64_t words_left_out(io::FileSystem& fs, const std::string& cache_dir) {
  int64_t out = 0;
  const StoreLedger ledger = read_ledger(fs, cache_dir).value();
  for (const FileLedger& file : ledger.files)
    if (const auto found = file.left_out.find("words"); found != file.left_out.end()) out += found->second;
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
  const StoreLedger ledger = read_ledger(fs, "some").value();
  for (const FileLedger& file : ledger.files)
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

TEST_CASE(
    "verdicts: a store is used by its folder alone, and without the file of verdicts where the texts are "
    "gone") {
  io::MemoryFileSystem fs;
  write_lines(fs, "in/a.jsonl", 0, 40);
  check_ok(write_row_verdicts(fs, "rows.jsonl", drop_rows(fs, {{"in/a.jsonl", {3, 4}}})));
  const DataOptions options = rows_options("store", {"in/a.jsonl"}, "rows.jsonl");
  const auto store = build_rows(fs, options);
  REQUIRE_MESSAGE(store.ok(), store.error().message());
  const DataOptions folder = rows_options("store", {}, "");
  const auto alone = build_rows(fs, folder);
  REQUIRE_MESSAGE(alone.ok(), alone.error().message());
  CHECK(alone->hash() == store->hash());
  CHECK(TokenStore::open(fs, folder, components_of(folder)[0], test_tokenizer()).ok());
  // The texts are here, so that the verdicts are lost, or their path is a wrong one.
  check_ok(fs.remove("rows.jsonl"));
  const auto lost = build_rows(fs, options);
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().message().find("rows.jsonl") != std::string::npos);
  check_ok(fs.remove("in/a.jsonl"));
  const auto moved = build_rows(fs, options);
  REQUIRE_MESSAGE(moved.ok(), moved.error().message());
  CHECK(moved->hash() == store->hash());
  CHECK(TokenStore::open(fs, options, components_of(options)[0], test_tokenizer()).ok());
  // Nothing can be built without them.
  CHECK_FALSE(build_rows(fs, rows_options("other", {"in/a.jsonl"}, "rows.jsonl")).ok());
}

TEST_CASE("verdicts: appended files are read through theirs, and old ones may not change") {
  io::MemoryFileSystem fs;
  write_lines(fs, "in/a.jsonl", 0, 40);
  write_lines(fs, "in/held.jsonl", 100, 10);
  write_lines(fs, "in/new.jsonl", 200, 30);
  const auto options = [](const std::string& cache_dir, bool all) {
    return rows_options(
        cache_dir,
        all ? std::vector<std::string>{"in/a.jsonl", "in/new.jsonl"} : std::vector<std::string>{"in/a.jsonl"},
        "rows.jsonl", {"in/held.jsonl"});
  };
  check_ok(write_row_verdicts(fs, "rows.jsonl", drop_rows(fs, {{"in/a.jsonl", {3, 4}}})));
  REQUIRE(build_rows(fs, options("store", false)).ok());
  // Verdicts on the old files alone: nothing is taken unseen, and the store stays as it is.
  const auto unseen = build_rows(fs, options("store", true), true);
  REQUIRE_FALSE(unseen.ok());
  CHECK(unseen.error().message().find("has verdicts on 1 files, and the texts are 2 files") !=
        std::string::npos);
  CHECK(build_rows(fs, options("store", false)).ok());
  // Others on an old file.
  check_ok(
      write_row_verdicts(fs, "rows.jsonl", drop_rows(fs, {{"in/a.jsonl", {3, 5}}, {"in/new.jsonl", {1}}})));
  CHECK_FALSE(build_rows(fs, options("store", true), true).ok());
  check_ok(write_row_verdicts(fs, "rows.jsonl",
                              drop_rows(fs, {{"in/a.jsonl", {3, 4}}, {"in/new.jsonl", {1, 30}}})));
  const auto refused = build_rows(fs, options("store", true));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message().find("--append") != std::string::npos);
  const auto more = build_rows(fs, options("store", true), true);
  REQUIRE_MESSAGE(more.ok(), more.error().message());
  const auto whole = build_rows(fs, options("whole", true));
  REQUIRE(whole.ok());
  CHECK(more->hash() == whole->hash());
  CHECK(words_left_out(fs, "store") == 4);
  check_ok(verify_store(fs, "store"));
  CHECK(build_rows(fs, options("store", true)).ok());
}

TEST_CASE("verdicts: parts that leave out rows are joined to the store of the whole, with their counts") {
  io::MemoryFileSystem fs;
  write_lines(fs, "in/a.jsonl", 0, 40);
  write_lines(fs, "in/b.jsonl", 100, 25);
  check_ok(write_row_verdicts(fs, "a.rows", drop_rows(fs, {{"in/a.jsonl", {3, 4}}})));
  check_ok(write_row_verdicts(fs, "b.rows", drop_rows(fs, {{"in/b.jsonl", {7}}})));
  check_ok(
      write_row_verdicts(fs, "rows.jsonl", drop_rows(fs, {{"in/a.jsonl", {3, 4}}, {"in/b.jsonl", {7}}})));
  REQUIRE(build_rows(fs, rows_options("part-a", {"in/a.jsonl"}, "a.rows")).ok());
  REQUIRE(build_rows(fs, rows_options("part-b", {"in/b.jsonl"}, "b.rows")).ok());
  const auto whole = build_rows(fs, rows_options("whole", {"in/a.jsonl", "in/b.jsonl"}, "rows.jsonl"));
  REQUIRE(whole.ok());
  for (const auto& [folder, rows] :
       {std::pair{"copied", JoinRows::kCopy}, std::pair{"joined", JoinRows::kInPlace}}) {
    const DataOptions options = rows_options(folder, {"in/a.jsonl", "in/b.jsonl"}, "rows.jsonl");
    for (int run = 0; run < 2; ++run) {  // the second finds what the first made
      const auto joined = join_rows(fs, options, rows);
      REQUIRE_MESSAGE(joined.ok(), joined.error().message());
      CHECK(joined->hash() == whole->hash());
    }
    CHECK(words_left_out(fs, folder) == 3);
    check_ok(verify_store(fs, folder));
  }
  // The control: verdicts that a part was not built through.
  check_ok(
      write_row_verdicts(fs, "rows.jsonl", drop_rows(fs, {{"in/a.jsonl", {3, 4}}, {"in/b.jsonl", {8}}})));
  const auto other =
      join_rows(fs, rows_options("other", {"in/a.jsonl", "in/b.jsonl"}, "rows.jsonl"), JoinRows::kCopy);
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message().find("part-b: the token store there was made from something else") !=
        std::string::npos);
}

TEST_CASE("verdicts: equal files are told apart, and numbers of rows that no file has are errors") {
  io::MemoryFileSystem fs;
  write_lines(fs, "in/a.jsonl", 0, 9);
  write_lines(fs, "in/b.jsonl", 0, 9);
  const auto of = [&](Rows a, Rows b) {
    return drop_rows(fs, {{"in/a.jsonl", std::move(a)}, {"in/b.jsonl", std::move(b)}}).left_out();
  };
  CHECK(of({3}, {}) != of({}, {3}));
  CHECK(of({3}, {}) == drop_rows(fs, {{"in/a.jsonl", {3}}}).left_out());
  CHECK(of({}, {}) == "");
  const std::string a = sha256_hex(*fs.read_file("in/a.jsonl"));
  CHECK(of({3}, {5}) == sha256_hex(a + " 3\n" + a + " 5 2\n"));
  RowVerdicts large = drop_rows(fs, {{"in/a.jsonl", {}}, {"in/b.jsonl", {}}});
  large.files[0].rows = INT64_MAX - 9;
  check_ok(write_row_verdicts(fs, "large.rows", large));
  CHECK(read_row_verdicts(fs, "large.rows").ok());
  ++large.files[0].rows;
  const auto file = fmt::format(
      "{{\"format\":\"ostro row verdicts 1\"}}\n"
      "{{\"file\":\"a\",\"rows\":{},\"sha256\":\"{}\"}}\n"
      "{{\"file\":\"b\",\"rows\":9,\"sha256\":\"{}\"}}\n",
      large.files[0].rows, a, a);
  write(fs, "too_large.rows", file);
  const auto read = read_row_verdicts(fs, "too_large.rows");
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().message().find("too_large.rows:3") != std::string::npos);
}
