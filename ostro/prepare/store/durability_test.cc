// Stores after kills, power losses, full disks and damage.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ostro/base/test_size.h"
#include "ostro/data/arrays/recorded_sums.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/prepare/store/journal.h"
#include "ostro/prepare/store/store_writer.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

void write_small_corpus(io::FileSystem& fs, const std::string& root) {
  check_ok(fs.make_dirs(root));
  for (int i = 0; i < 4; ++i) write(fs, fmt::format("{}/{}.txt", root, i), words(i, 12 + 9 * i));
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", words(50 + i, 6));
  write(fs, root + "/5.jsonl", lines);
}

BuildSettings settings() {
  BuildSettings settings = small_settings(1);
  settings.commit_bytes = 150;
  return settings;
}

std::vector<std::string> files_below(io::FileSystem& fs, const std::string& root) {
  auto found = fs.glob(root + "/**");
  REQUIRE(found.ok());
  return *found;
}

// The tokens of both splits, or the first error of reading them.
Result<std::vector<int32_t>> read_everything(io::FileSystem& fs, const std::string& cache) {
  ASSIGN_OR_RETURN(const auto store, TokenStore::open(fs, cache));
  std::vector<int32_t> all;
  for (const Split split : kSplits) {
    const TokenStream& stream = store->split(split);
    std::vector<int32_t> tokens(static_cast<size_t>(stream.tokens()));
    RETURN_IF_ERROR(stream.read(0, tokens));
    ASSIGN_OR_RETURN(const auto rows, stream.rows_of(0, stream.tokens()));
    for (const RowSpan& row : rows) {
      ASSIGN_OR_RETURN(const RowSource source, stream.source(row.row));
      all.push_back(static_cast<int32_t>(row.end));
      all.push_back(static_cast<int32_t>(source.document));
      all.push_back(static_cast<int32_t>(source.bytes));
    }
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  return all;
}

}  // namespace

TEST_CASE("token store: a power cut at any operation costs nothing but time") {
  DataOptions options = corpus_options("corpus");
  options.validation_fraction = 0.4;
  int64_t operations = 0;
  std::string hash;
  std::vector<int32_t> tokens;
  {
    io::MemoryFileSystem memory;
    write_small_corpus(memory, "corpus");
    io::FaultyFileSystem fs(memory);
    const auto ledger = build_store(fs, options, test_tokenizer(), settings());
    REQUIRE(ledger.ok());
    hash = ledger->hash();
    tokens = *read_everything(memory, options.cache_dir);
    operations = fs.writes();
  }
  REQUIRE(operations > 150);
  for (int64_t at = 0; at < operations; at += kFaultStep) {
    for (const uint64_t seed : {0, 1 + static_cast<int>(at)}) {
      CAPTURE(at);
      CAPTURE(seed);
      io::MemoryFileSystem memory;
      write_small_corpus(memory, "corpus");
      io::FaultyFileSystem fs(memory);
      fs.inject(io::Fault::kCrash, at);
      CHECK_FALSE(build_store(fs, options, test_tokenizer(), settings()).ok());
      memory.crash(seed);
      if (const auto ledger = read_ledger(memory, options.cache_dir); ledger.ok())
        CHECK(verify_store(memory, options.cache_dir).ok());
      const auto again = build_store(memory, options, test_tokenizer(), settings());
      REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
      CHECK(again->hash() == hash);
      CHECK(*read_everything(memory, options.cache_dir) == tokens);
    }
  }
}

TEST_CASE("token store: a full disk is an error, and the build goes on when there is room") {
  DataOptions options = corpus_options("corpus");
  io::MemoryFileSystem whole;
  write_corpus(whole, "corpus");
  const auto expected = build_store(whole, options, test_tokenizer(), small_settings());
  REQUIRE(expected.ok());
  int failures = 0;
  for (int64_t room = 10;; room = room * 2) {
    io::MemoryFileSystem memory;
    write_corpus(memory, "corpus");
    io::FaultyFileSystem fs(memory);
    fs.limit_space(room);
    const auto failed = build_store(fs, options, test_tokenizer(), small_settings());
    if (failed.ok()) break;
    ++failures;
    CHECK(failed.error().code() == ErrorCode::kIo);
    CHECK(failed.error().message().find("corpus-cache/") != std::string::npos);
    fs.heal();
    const auto again = build_store(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
    CHECK(again->hash() == expected->hash());
    CHECK(verify_store(fs, options.cache_dir).ok());
  }
  CHECK(failures >= 8);
}

TEST_CASE("token store: an unfinished one is refused with other options, and built again from other texts") {
  DataOptions options = corpus_options("corpus");
  io::MemoryFileSystem whole;
  write_corpus(whole, "corpus");
  write(whole, "corpus/text/01.txt", "something else");
  const auto expected = build_store(whole, options, test_tokenizer(), small_settings());
  REQUIRE(expected.ok());
  for (const bool half : {false, true}) {
    CAPTURE(half);
    io::MemoryFileSystem fs;
    write_corpus(fs, "corpus");
    if (half) {
      build_half(fs, options, small_settings());
    } else {
      io::FaultyFileSystem small(fs);
      small.limit_space(4000);
      REQUIRE_FALSE(build_store(small, options, test_tokenizer(), small_settings()).ok());
    }
    const auto found = Journal::read(fs, options.cache_dir);
    REQUIRE_MESSAGE(found.ok(), (found.ok() ? "" : found.error().message()));
    CHECK(found->has_commit == half);
    DataOptions other = options;
    other.text_key = "body";
    const auto refused = build_store(fs, other, test_tokenizer(), small_settings());
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().find("data.text_key") != std::string::npos);
    CHECK(TokenStore::open(fs, options.cache_dir).error().code() == ErrorCode::kNotFound);
    write(fs, "corpus/text/01.txt", "something else");
    const auto again = build_store(fs, options, test_tokenizer(), small_settings());
    REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
    CHECK(again->hash() == expected->hash());
    CHECK(verify_store(fs, options.cache_dir).ok());
  }
}

TEST_CASE("token store: cut, zeroed or changed files are refused by name, or do no harm") {
  io::MemoryFileSystem fs;
  write_small_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  options.validation_fraction = 0.4;
  REQUIRE(build_store(fs, options, test_tokenizer(), settings()).ok());
  const std::vector<int32_t> expected = *read_everything(fs, options.cache_dir);
  int64_t tried = 0, refused = 0;
  for (const std::string& path : files_below(fs, options.cache_dir)) {
    // For others, or for extending the store (component_test.cc) and for proofs (row_tree_test.cc) only.
    if (path.ends_with("shard_ledger.json") || path.ends_with("build.lock") ||
        path == digests_path(options.cache_dir) || path == row_tree_path(options.cache_dir))
      continue;
    CAPTURE(path);
    const std::string original = *fs.read_file(path);
    std::string& content = *fs.content(path);
    const std::string folder = path.substr(0, path.find(path.ends_with("zarr.json") ? "/zarr.json" : "/c/"));
    const auto must_fail = [&] {
      const auto result = read_everything(fs, options.cache_dir);
      REQUIRE_FALSE(result.ok());
      CHECK_MESSAGE(result.error().message().find(folder) != std::string::npos, result.error().message());
    };
    for (const size_t size : {size_t{0}, original.size() / 2, original.size() - 2}) {
      content = original.substr(0, size);
      must_fail();
    }
    content = std::string(original.size(), '\0');
    must_fail();
    for (size_t at = 0; at < original.size(); at += 1 + original.size() * kFaultStep / 300) {
      content = original;
      content[at] = static_cast<char>(content[at] ^ (1 << (at % 8)));
      const auto result = read_everything(fs, options.cache_dir);
      ++tried;
      if (!result.ok()) ++refused;
      // Bytes that no reader uses (an old index, padding of a chunk) may change.
      if (result.ok()) CHECK(*result == expected);
    }
    content = original;
  }
  REQUIRE(tried * kFaultStep > 1000);
  MESSAGE(refused, " of ", tried, " changed bytes were refused, the others are of no use to a reader");
  CHECK(refused * 4 > tried);
  CHECK(*read_everything(fs, options.cache_dir) == expected);
  check_ok(fs.remove(chunk_tables_path(options.cache_dir)));
  const auto gone = TokenStore::open(fs, options.cache_dir);
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code() == ErrorCode::kCorrupt);
  CHECK(gone.error().message().find("chunks.table: is gone") != std::string::npos);
}

TEST_CASE(
    "token store: an unfinished one with changed bytes gives the same tokens or an error, never others") {
  io::MemoryFileSystem memory;
  write_small_corpus(memory, "corpus");
  DataOptions options = corpus_options("corpus");
  options.validation_fraction = 0.4;
  io::MemoryFileSystem whole;
  write_small_corpus(whole, "corpus");
  REQUIRE(build_store(whole, options, test_tokenizer(), settings()).ok());
  const std::vector<int32_t> expected = *read_everything(whole, options.cache_dir);
  io::FaultyFileSystem fs(memory);
  fs.limit_space(15000);
  REQUIRE_FALSE(build_store(fs, options, test_tokenizer(), settings()).ok());
  fs.heal();
  std::vector<std::pair<std::string, std::string>> files;
  for (const std::string& path : files_below(memory, options.cache_dir))
    files.emplace_back(path, *memory.read_file(path));
  int64_t refused = 0, tried = 0;
  for (const auto& [path, original] : files) {
    if (path.ends_with("build.lock")) continue;
    CAPTURE(path);
    for (size_t at = 0; at < original.size(); at += 1 + original.size() / 60) {
      check_ok(memory.remove_all(options.cache_dir));
      for (const auto& [name, content] : files) {
        check_ok(memory.make_dirs(io::parent_path(name)));
        write(memory, name, content);
      }
      char& byte = (*memory.content(path))[at];
      byte = static_cast<char>(byte ^ (1 << (at % 8)));
      ++tried;
      const auto built = build_store(memory, options, test_tokenizer(), settings());
      const auto read = built.ok() ? read_everything(memory, options.cache_dir) : built.error();
      if (read.ok())
        CHECK(*read == expected);
      else
        ++refused;
    }
  }
  CHECK(tried > 300);
  CHECK(refused > 30);
}

TEST_CASE("child: builds the store in OSTRO_TEST_FOLDER" * doctest::skip()) {
  const std::string root = std::getenv("OSTRO_TEST_FOLDER");
  DataOptions options = corpus_options(root + "/corpus");
  const auto ledger = build_store(io::local_file_system(), options, test_tokenizer(), settings());
  REQUIRE_MESSAGE(ledger.ok(), (ledger.ok() ? "" : ledger.error().message()));
}

TEST_CASE("token store: kill -9 at every point of a build, twice in a row, gives the same ledger") {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / fmt::format("ostro_data_test_{}", getpid());
  io::FileSystem& fs = io::local_file_system();
  const auto fresh = [&] {
    std::filesystem::remove_all(root);
    check_ok(fs.make_dirs(root));
    write_small_corpus(fs, root / "corpus");
  };
  // Runs a build in a process of its own. Returns whether it was killed.
  const auto build = [&](const std::string& failpoint) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      setenv("OSTRO_TEST_FOLDER", root.c_str(), 1);
      setenv("OSTRO_FAILPOINT", failpoint.c_str(), 1);
      execl("/proc/self/exe", "data_test", "--test-case=child: *", "--no-skip", "--minimal", "--no-version",
            nullptr);
      _exit(99);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) return true;
    REQUIRE(WEXITSTATUS(status) == 0);
    return false;
  };
  fresh();
  REQUIRE_FALSE(build(""));
  const std::string cache = root / "corpus-cache";
  const std::string hash = read_ledger(fs, cache)->hash();
  int kills = 0;
  for (int count = 1;; count += 2) {
    fresh();
    if (!build(fmt::format("data_build:{}", count))) break;
    ++kills;
    CHECK_FALSE(TokenStore::open(fs, cache).ok());
    kills += build("data_build:2") ? 1 : 0;
    build("");
    CHECK(read_ledger(fs, cache)->hash() == hash);
    CHECK(verify_store(fs, cache).ok());
  }
  CHECK(kills >= 10);
  std::filesystem::remove_all(root);
}
