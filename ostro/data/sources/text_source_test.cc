#include "ostro/data/sources/text_source.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ostro/data/sources/row_reader.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

Result<std::vector<std::string>> texts_read(io::FileSystem& fs, const std::vector<std::string>& inputs,
                                            const std::string& text_key = "text") {
  ASSIGN_OR_RETURN(const FoundSources found, find_sources(fs, {inputs, {}}, {.train = "--input"}));
  ASSIGN_OR_RETURN(auto sources, found.all());
  const auto source = texts_of_sources(fs, std::move(sources), text_key, "--text_key");
  std::vector<std::string> out;
  std::string document;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, source(document));
    if (!more) return out;
    out.push_back(document);
  }
}

std::string text_source_error(io::FileSystem& fs, const std::string& input,
                              const std::string& text_key = "text") {
  const auto read = texts_read(fs, {input}, text_key);
  REQUIRE_FALSE(read.ok());
  return read.error().message();
}

// The paths that a component of these options reads.
std::vector<std::string> paths_of(io::FileSystem& fs, const DataOptions& options, const char* component) {
  for (const Component& c : components_of(options)) {
    if (c.name != component) continue;
    const auto found = find_sources(fs, source_places(options, c));
    REQUIRE_MESSAGE(found.ok(), found.error().message());
    std::vector<std::string> paths;
    for (const SourceFile& file : found->files) paths.push_back(file.path);
    return paths;
  }
  return {};
}

}  // namespace

TEST_CASE("no file of a token store is a source, however the path to its folder is written") {
  io::MemoryFileSystem fs;
  for (const char* folder : {"corpus/cache/web", "corpus/stores/code", "corpus/stores2"})
    check_ok(fs.make_dirs(folder));
  for (const char* file : {"corpus/a.txt", "corpus/cache/web/ledger.json", "corpus/cache/rest.txt",
                           "corpus/stores/code/build.lock", "corpus/stores2/b.txt"})
    write(fs, file, "text");
  DataOptions options;
  options.cache_dir = io::absolute_path("corpus/cache");
  options.components["web"].train_urls = {"corpus"};
  options.components["code"].train_urls = {"corpus"};
  options.components["code"].cache_dir = "./corpus/stores2/../stores/code";
  for (const char* component : {"web", "code"})
    CHECK(paths_of(fs, options, component) ==
          std::vector<std::string>{"corpus/a.txt", "corpus/stores2/b.txt"});
  options.components.clear();
  options.train_urls = {"corpus"};
  CHECK(paths_of(fs, options, "") ==
        std::vector<std::string>{"corpus/a.txt", "corpus/stores/code/build.lock", "corpus/stores2/b.txt"});
}

TEST_CASE("texts beside the stores in data.cache_dir are read where an entry says so") {
  io::MemoryFileSystem fs;
  for (const char* folder : {"all/web", "all/texts"}) check_ok(fs.make_dirs(folder));
  for (const char* file : {"all/web/ledger.json", "all/texts/a.txt", "all/b.txt"}) write(fs, file, "text");
  const std::string here = io::absolute_path(".");
  DataOptions options;
  for (const std::string& cache_dir : {std::string("all"), std::string("./all/"), here + "/all"}) {
    CAPTURE(cache_dir);
    options.cache_dir = cache_dir;
    auto& web = options.components["web"];
    for (const char* entry : {"all/texts", "all/texts/*.txt", "./all//texts/?.txt"}) {
      CAPTURE(entry);
      web.train_urls = {entry};
      CHECK(paths_of(fs, options, "web") == std::vector<std::string>{"all/texts/a.txt"});
    }
    for (const char* entry : {"all/*.txt", "all", "all/web", "all/web/*.json", "all/web/ledger.json"}) {
      CAPTURE(entry);
      web.train_urls = {entry};
      const auto found = find_sources(fs, source_places(options, components_of(options)[0]));
      REQUIRE_FALSE(found.ok());
      CHECK(found.error().code() == ErrorCode::kInvalidArgument);
      CHECK(found.error().message().find("a folder of token stores") != std::string::npos);
    }
    web.train_urls = {"all/web/*.txt"};  // names nothing, in a store or elsewhere
    CHECK(find_sources(fs, source_places(options, components_of(options)[0]))->missing ==
          "data.train_urls: all/web/*.txt");
  }
}

TEST_CASE("a link to nothing among the sources is an error, and not taken for texts that are elsewhere") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("ostro_sources_{}", getpid());
  std::filesystem::create_directories(folder);
  io::FileSystem& fs = io::local_file_system();
  write(fs, folder / "a.txt", "text");
  CHECK(find_sources(fs, {{folder}, {}})->files.size() == 1);
  std::filesystem::create_symlink(folder / "gone", folder / "b.txt");
  const auto found = find_sources(fs, {{folder}, {}});
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code() == ErrorCode::kIo);
  CHECK(found.error().message().find("b.txt") != std::string::npos);
  // A link in a token store is not followed.
  CHECK(find_sources(fs, {{folder.parent_path() / folder.filename() / "a*"}, {}})->files.size() == 1);
  std::filesystem::create_directories(folder / "store");
  std::filesystem::rename(folder / "b.txt", folder / "store/b.txt");
  CHECK(find_sources(fs, {{folder}, {}, {folder / "store"}})->files.size() == 1);
  const auto none = find_sources(fs, {{folder / "c.txt"}, {}});
  REQUIRE(none.ok());
  CHECK(none->all().error().code() == ErrorCode::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST_CASE("texts of sources: rows and whole files, without empty ones") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  const std::string lines =
      "{\"text\": \"one\", \"body\": \"B\"}\n \n{\"text\": \"\"}\n{\"text\": \"t\xffo\"}\n";
  write(fs, "in/a.jsonl", lines);
  write(fs, "in/b.NDJSON.zst", packed(io::Compression::kZstd, lines));
  write(fs, "in/c.txt", "a whole\nfile");
  write(fs, "in/d.txt", "");
  const std::string two = "t\xef\xbf\xbdo";
  CHECK(*texts_read(fs, {"in"}) == std::vector<std::string>{"one", two, "one", two, "a whole\nfile"});
  CHECK(*texts_read(fs, {"in/c.txt", "in/a.jsonl", "in/*.txt"}) ==
        std::vector<std::string>{"a whole\nfile", "one", two});
  CHECK(text_source_error(fs, "in/a.jsonl", "body") ==
        "in/a.jsonl:3: has no field \"body\"; set --text_key to the "
        "field that holds the text");
}

TEST_CASE("texts of sources: progress counts the files as they are stored, packed or not, to their end") {
  io::MemoryFileSystem fs;
  const std::string lines = json_lines(500);
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a.jsonl", lines},
      {"b.jsonl.gz", packed(io::Compression::kGzip, lines)},
      {"c.jsonl.zst", packed(io::Compression::kZstd, lines)}};
  std::vector<SourceFile> sources;
  int64_t total = 0;
  for (const auto& [path, content] : files) {
    write(fs, path, content);
    const auto size = static_cast<int64_t>(content.size());
    sources.push_back({.path = path, .format = FileFormat::kJsonl, .size = size});
    total += size;
  }
  TextProgress progress;
  const auto source = texts_of_sources(fs, sources, "text", "--text_key", &progress);
  CHECK(progress.bytes_total == total);
  std::string document;
  int64_t before = 0, wrong = 0;
  for (const SourceFile& file : sources) {
    // Decoders give text in blocks of 128 KiB.
    const int64_t block = bytes_of_rows(file.size, 128 << 10, static_cast<int64_t>(lines.size()));
    for (int64_t rows = 1; rows <= 500; ++rows) {
      REQUIRE(*source(document));
      const int64_t in_file = progress.bytes_done - before;
      wrong += in_file > file.size || (in_file == file.size && rows < 500);
      wrong += std::abs(in_file - bytes_of_rows(file.size, rows, 500)) > block;
    }
    before += file.size;
  }
  CHECK(wrong == 0);
  CHECK_FALSE(*source(document));
  CHECK(progress.bytes_done == total);
}

TEST_CASE("texts of sources: what cannot be read is named") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("in"));
  CHECK(text_source_error(fs, "in").starts_with("--input: in: names no file"));
  write(fs, "in/a.jsonl", "{\"text\": \"one\"}\n{\"text\": 2}\n");
  CHECK(text_source_error(fs, "in") == "in/a.jsonl:2: field \"text\" is not a string");
  write(fs, "in/a.jsonl", "\n");
  // Beyond the first part that is read of a file.
  std::string text;
  while (text.size() < (size_t{17} << 20)) text += "the cat sat on the mat\n";
  const size_t end = text.size();
  write(fs, "in/b.txt", text + std::string("ab\0", 3));
  CHECK(text_source_error(fs, "in").starts_with(
      fmt::format("in/b.txt: holds a NUL byte (at byte {})", end + 2)));
  write(fs, "in/a.json", "[\n");
  CHECK(text_source_error(fs, "in").starts_with("in/a.json:1: the file is one JSON document and not lines"));
  write(fs, "in/a.bin", "x");
  CHECK(text_source_error(fs, "in").find("narrower glob in --input") != std::string::npos);
}
