#include "ostro/data/sources/row_reader.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "ostro/base/sha256.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

struct Read {
  std::vector<Row> rows;
  std::vector<RowPosition> positions;  // behind each
  std::vector<int64_t> stored;         // likewise
  std::string sha256;
};

Read read_rows(io::FileSystem& fs, const std::string& path, FileFormat format, const RowOptions& options = {},
               const RowPosition& start = {}) {
  auto reader = open_rows(fs, path, format, options, start);
  REQUIRE_MESSAGE(reader.ok(), reader.error().message());
  Read out;
  Row row;
  for (;;) {
    auto more = (*reader)->next(row);
    REQUIRE(more.ok());
    if (!*more) break;
    out.rows.push_back(row);
    out.positions.push_back((*reader)->position());
    out.stored.push_back((*reader)->stored_bytes());
  }
  out.sha256 = (*reader)->file_sha256();
  return out;
}

}  // namespace

TEST_CASE("rows: a whole file is one, and one too long is a problem of that row") {
  io::MemoryFileSystem fs;
  write(fs, "a.txt", "hello\nworld");
  const Read read = read_rows(fs, "a.txt", FileFormat::kText);
  REQUIRE(read.rows.size() == 1);
  CHECK(read.rows[0].is_text);
  CHECK(read.rows[0].bytes == "hello\nworld");
  CHECK(read.rows[0].end == 11);
  CHECK(read.sha256 == sha256_hex("hello\nworld"));
  CHECK(read_rows(fs, "a.txt", FileFormat::kText, {}, read.positions[0]).rows.empty());
  const Read cut = read_rows(fs, "a.txt", FileFormat::kText, {.max_bytes = 10});
  CHECK(cut.rows.at(0).bytes.empty());
  CHECK(cut.rows.at(0).problem == "is 11 bytes long, and at most 10 are read as one document; split it");
  CHECK(cut.sha256.empty());  // it was not read
}

TEST_CASE("rows: a file with a NUL byte is no text") {
  io::MemoryFileSystem fs;
  const std::string bytes("ab\0c\0", 5);
  write(fs, "a.txt", bytes);
  const Read read = read_rows(fs, "a.txt", FileFormat::kText);
  REQUIRE(read.rows.size() == 1);
  CHECK(read.rows[0].bytes.empty());
  CHECK(read.rows[0].problem.starts_with("holds a NUL byte (at byte 2), so it is not a text"));
  CHECK(read.sha256 == sha256_hex(bytes));
}

TEST_CASE("rows of JSON lines: begin anywhere and go on as if nothing had happened") {
  io::MemoryFileSystem fs;
  const std::string text =
      "{\"text\": \"one\"}\n\n{\"text\": \"" + std::string(500, 'x') + "\"}\n{\"text\": 4}\n5";
  write(fs, "a.jsonl", text);
  write(fs, "b.jsonl.gz",
        packed(io::Compression::kGzip, text.substr(0, 30)) + packed(io::Compression::kGzip, text.substr(30)));
  write(
      fs, "c.jsonl.zst",
      packed(io::Compression::kZstd, text.substr(0, 300)) + packed(io::Compression::kZstd, text.substr(300)));
  write(fs, "D.NDJSON.GZ", packed(io::Compression::kGzip, text));
  for (const std::string path : {"a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "D.NDJSON.GZ"}) {
    CAPTURE(path);
    const Read all = read_rows(fs, path, FileFormat::kJsonl, {.max_bytes = 100});
    REQUIRE(all.rows.size() == 5);
    CHECK(all.sha256 == sha256_hex(*fs.read_file(path)));
    for (size_t i = 0; i < 5; ++i) {
      const Row& row = all.rows[i];
      CHECK(row.number == static_cast<int64_t>(i + 1));
      CHECK_FALSE(row.is_text);
      CHECK(row.problem.empty() == (i != 2));
      const std::string bytes =
          text.substr(static_cast<size_t>(row.begin), static_cast<size_t>(row.end - row.begin));
      CHECK(row.bytes == (i == 2 ? "" : bytes));
      const Read rest = read_rows(fs, path, FileFormat::kJsonl, {.max_bytes = 100}, all.positions[i]);
      CHECK(rest.rows.size() == 4 - i);
      if (i < 4) CHECK(rest.rows[0].bytes == all.rows[i + 1].bytes);
      if (i < 4) CHECK(rest.rows[0].begin == all.rows[i + 1].begin);
      const Read by_number =
          read_rows(fs, path, FileFormat::kJsonl, {.max_bytes = 100}, {.rows = all.positions[i].rows});
      CHECK(by_number.rows.size() == 4 - i);
    }
    CHECK(open_rows(fs, path, FileFormat::kJsonl, {}, {.rows = 6}).error().message() ==
          path + ": has 5 lines, but line 6 was read before");
  }
}

TEST_CASE("rows of a .json: lines, unless its first line shows that it is one document") {
  io::MemoryFileSystem fs;
  const std::string lines = "\xef\xbb\xbf{\"text\": \"one\"}\r\n{\n[1]\n";
  write(fs, "a.json", lines);
  write(fs, "b.json.gz", packed(io::Compression::kGzip, lines));
  write(fs, "c.JSON.zst", packed(io::Compression::kZstd, lines));
  for (const std::string path : {"a.json", "b.json.gz", "c.JSON.zst"}) {
    CAPTURE(path);
    const Read read = read_rows(fs, path, FileFormat::kJsonl);
    REQUIRE(read.rows.size() == 3);
    CHECK(read.rows[0].bytes == "{\"text\": \"one\"}");
    for (const Row& row : read.rows) CHECK(row.problem.empty());
    const Read rest = read_rows(fs, path, FileFormat::kJsonl, {}, read.positions[0]);
    REQUIRE(rest.rows.size() == 2);
    CHECK(rest.rows[0].problem.empty());
  }
  const auto problem = [&](const std::string& text, const std::string& path = "d.json") {
    write(fs, path, text);
    const Read read = read_rows(fs, path, FileFormat::kJsonl);
    if (!read.rows[0].problem.empty()) CHECK(read.rows.size() == 1);
    return read.rows[0].problem;
  };
  const std::string one = "the file is one JSON document and not lines, since its first line ",
                    mend = "; write its rows as objects, one a line, or leave it out by a narrower glob";
  CHECK(problem("[{\"text\": \"a\"},\n {\"text\": \"b\"}]\n") == one + "begins a list" + mend);
  CHECK(problem("[{\"text\": \"a\"}]") == one + "begins a list" + mend);
  for (const char* open : {" {\n \"text\": \"a\"\n}", "{\"rows\": [\n1]}", "{\"text\": \"\xff\xff\n\"}", "{"})
    CHECK_MESSAGE(problem(open) == one + "is not a whole object" + mend, open);
  // These errors are about the row; files with other names are JSON lines.
  for (const char* row : {"{\"text\": }\n{}", "{}", "{} {", "7\n{\n}", "\n{\n}", "{\"a\": 1e999}"})
    CHECK_MESSAGE(problem(row).empty(), row);
  CHECK(problem("{\n}", "d.jsonl").empty());
}

TEST_CASE("rows of JSON lines: how far they are in the file as it is stored, which their end alone reaches") {
  io::MemoryFileSystem fs;
  const std::string text = json_lines(1000);
  write(fs, "a.jsonl", text);
  write(fs, "b.jsonl.gz", packed(io::Compression::kGzip, text));
  write(fs, "c.jsonl.zst",
        packed(io::Compression::kZstd, text.substr(0, 300000)) +
            packed(io::Compression::kZstd, text.substr(300000)));
  for (const std::string path : {"a.jsonl", "b.jsonl.gz", "c.jsonl.zst"}) {
    CAPTURE(path);
    const Read all = read_rows(fs, path, FileFormat::kJsonl);
    const int64_t size = fs.stat(path)->size;
    // Decoders give text in blocks of 128 KiB.
    const int64_t block = bytes_of_rows(size, 128 << 10, static_cast<int64_t>(text.size()));
    int wrong = 0;
    for (size_t i = 0; i < all.rows.size(); ++i) {
      const int64_t stored = all.stored[i], rows = static_cast<int64_t>(i + 1);
      wrong += i > 0 && stored < all.stored[i - 1];
      wrong += stored > size || (stored == size && rows < 1000);
      wrong += std::abs(stored - bytes_of_rows(size, rows, 1000)) > block;  // lines are alike
      if (path == "a.jsonl") wrong += stored != all.positions[i].bytes;
    }
    CHECK(wrong == 0);
    const Read rest = read_rows(fs, path, FileFormat::kJsonl, {}, all.positions[599]);
    CHECK(rest.stored.front() >= all.stored[599]);
    CHECK(rest.stored.back() <= size);
  }
}

TEST_CASE("rows: places in messages") {
  CHECK(row_place("d/a.txt", FileFormat::kText, 1) == "d/a.txt");
  CHECK(row_place("d/a.jsonl", FileFormat::kJsonl, 7) == "d/a.jsonl:7");
  CHECK(row_place("d/a.parquet", FileFormat::kParquet, 7) == "d/a.parquet: row 7");
}
