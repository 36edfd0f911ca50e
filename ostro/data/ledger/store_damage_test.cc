// A damaged store is called damaged, with the advice to delete it. A store that merely cannot be read is not.
#include "ostro/data/ledger/store_damage.h"

#include <doctest/doctest.h>

#include "ostro/io/files/faulty_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Opens a store and reads everything that a run reads.
Status read_all(io::FileSystem& fs, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const auto store, TokenStore::open(fs, cache_dir));
  const TokenStream& stream = store->split(Split::kTrain);
  std::vector<int32_t> ids(static_cast<size_t>(stream.tokens()));
  RETURN_IF_ERROR(stream.read(0, ids));
  for (int64_t row = 0; row < stream.rows(); row += 7) {
    const auto source = stream.source(row);
    if (!source.ok()) return source.error();
  }
  return {};
}

}  // namespace

TEST_CASE("store damage: no read that fails makes a store a damaged one") {
  io::MemoryFileSystem memory;
  write_corpus(memory, "corpus");
  const DataOptions options = corpus_options("corpus");
  REQUIRE(build_store(memory, options, test_tokenizer(), small_settings()).ok());
  io::FaultyFileSystem fs(memory);
  check_ok(read_all(fs, options.cache_dir));
  const int64_t reads = fs.reads();
  REQUIRE(reads > 40);
  // The first are those of opening; of the chunks some.
  for (int64_t at = 0; at < reads; at += at < 40 ? 1 : 7) {
    fs.inject_read_error(at);
    const Status failed = read_all(fs, options.cache_dir);
    REQUIRE_FALSE(failed.ok());
    const std::string& message = failed.error().message();
    CHECK_MESSAGE(has_text(message, " of the token store in corpus-cache: "), message);
    CHECK_MESSAGE(!has_text(message, "delete"), message);
    CHECK_MESSAGE(!has_text(message, "damaged"), message);
  }
  // Nor does looking at it before a build.
  const auto rebuild = [&](int64_t at) {
    fs.inject_read_error(at);
    return build_store(fs, options, test_tokenizer(), small_settings());
  };
  for (int64_t at = 0; at < 4; ++at) {
    const auto failed = rebuild(at);
    if (failed.ok()) continue;
    CHECK_MESSAGE(!has_text(failed.error().message(), "delete"), failed.error().message());
  }
  fs.heal();
  check_ok(read_all(fs, options.cache_dir));
}

TEST_CASE("store damage: damage is named with the file and what to do") {
  io::MemoryFileSystem built;
  write_corpus(built, "corpus");
  const DataOptions options = corpus_options("corpus");
  REQUIRE(build_store(built, options, test_tokenizer(), small_settings()).ok());
  for (const char* path : {"/ledger.json", "/chunks.table", "/train/input_ids/data/c/0",
                           "/train/input_ids/data/zarr.json", "/train/rows/bytes/c/0"}) {
    for (const bool gone : {false, true}) {
      if (gone && path == std::string("/ledger.json")) continue;  // an unfinished store
      const std::string file = options.cache_dir + path;
      const std::string content = *built.read_file(file);
      if (gone) {
        check_ok(built.remove(file));
      } else {
        write(built, file, content.substr(0, content.size() / 2));
      }
      const Status failed = read_all(built, options.cache_dir);
      REQUIRE_MESSAGE(!failed.ok(), file);
      const std::string& message = failed.error().message();
      CHECK_MESSAGE(message.find("damaged token store: " + options.cache_dir + "/") == 0, message);
      CHECK_MESSAGE(has_text(message, "; restore the file, or delete corpus-cache and build it again"),
                    message);
      write(built, file, content);
    }
  }
  check_ok(read_all(built, options.cache_dir));
}
