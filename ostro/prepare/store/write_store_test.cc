#include "ostro/prepare/store/write_store.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "ostro/data/sources/row_reader.h"
#include "ostro/prepare/store/consolidate.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

constexpr int64_t kProgressRows = 2000;

// A commit after every unit.
BuildSettings progress_settings(std::vector<BuildProgress>& reports) {
  BuildSettings settings;
  settings.threads = 2;
  settings.commit_bytes = 1;
  settings.progress = [&reports](const BuildProgress& progress) { reports.push_back(progress); };
  return settings;
}

DataOptions one_file(io::FileSystem& fs, const std::string& path) {
  const std::string lines = json_lines(kProgressRows);
  write(fs, path,
        path.ends_with(".gz")    ? packed(io::Compression::kGzip, lines)
        : path.ends_with(".zst") ? packed(io::Compression::kZstd, lines)
                                 : lines);
  DataOptions options = corpus_options("in");
  options.train_urls = {path};
  return options;
}

// Checks the progress of a file with equal rows: bytes must follow from the documents. `before` documents
// were already in the store.
void check_reports(const std::vector<BuildProgress>& reports, int64_t size, int64_t before) {
  REQUIRE(reports.size() >= 3);
  int64_t last = 0;
  for (const BuildProgress& p : reports) {
    CHECK(p.bytes_total == size);
    CHECK(p.bytes_resumed == reports[0].bytes_resumed);
    CHECK(p.bytes_done > last);
    CHECK((p.bytes_done == size) == (before + p.documents == kProgressRows));
    CHECK(std::abs(p.bytes_done - bytes_of_rows(size, before + p.documents, kProgressRows)) <= size / 20);
    last = p.bytes_done;
  }
  CHECK(std::abs(reports[0].bytes_resumed - bytes_of_rows(size, before, kProgressRows)) <= size / 20);
  CHECK(last == size);
}

}  // namespace

TEST_CASE("progress of a build: within a file by its bytes as it is stored; after a kill that place counts") {
  for (const std::string path : {"a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) {
    CAPTURE(path);
    io::MemoryFileSystem fs;
    const DataOptions options = one_file(fs, path);
    const int64_t size = fs.stat(path)->size;
    std::vector<BuildProgress> reports;
    const BuildSettings settings = progress_settings(reports);
    build_half(fs, options, settings);
    reports.clear();
    const auto resumed = build_store(fs, options, test_tokenizer(), settings);
    REQUIRE(resumed.ok());
    const int64_t before = kProgressRows - reports.back().documents;
    CHECK(before > kProgressRows / 5);
    check_reports(reports, size, before);
    if (path == "a.jsonl") CHECK(reports[0].bytes_resumed == static_cast<int64_t>(json_lines(before).size()));

    check_ok(fs.remove_all(options.cache_dir));
    reports.clear();
    const auto whole = build_store(fs, options, test_tokenizer(), settings);
    REQUIRE(whole.ok());
    CHECK(whole->hash() == resumed->hash());
    CHECK(reports[0].bytes_resumed == 0);
    check_reports(reports, size, 0);
  }
}

TEST_CASE("progress of a build: files that are finished count whole") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  std::vector<BuildProgress> reports;
  const BuildSettings settings = progress_settings(reports);
  build_half(fs, options, settings);
  reports.clear();
  REQUIRE(build_store(fs, options, test_tokenizer(), settings).ok());
  const BuildProgress& last = reports.back();
  CHECK(last.files_done == last.files_total);
  CHECK(last.bytes_done == last.bytes_total);
  CHECK(last.bytes_resumed > 0);
  CHECK(reports[0].bytes_done > last.bytes_resumed);
}

TEST_CASE("progress of joining stores: within a file by its rows") {
  io::MemoryFileSystem fs;
  DataOptions options = one_file(fs, "a.jsonl");
  std::vector<BuildProgress> reports;
  const BuildSettings settings = progress_settings(reports);
  REQUIRE(build_store(fs, options, test_tokenizer(), settings).ok());
  const std::string part = options.cache_dir;
  options.cache_dir = "joined";
  reports.clear();
  const auto joined = consolidate_stores(fs, options, components_of(options)[0], test_tokenizer(), {part},
                                         JoinRows::kCopy, settings);
  REQUIRE(joined.ok());
  check_reports(reports, fs.stat("a.jsonl")->size, 0);
}
