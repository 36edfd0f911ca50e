#include "ostro/batches/loader/data_set.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/data/build/test_corpus.h"

namespace ostro::data {
namespace {

// Copies every file below a folder.
void copy_folder(io::FileSystem& fs, const std::string& from, const std::string& to) {
  check_ok(fs.make_dirs(to));
  const auto names = fs.list(from);
  REQUIRE(names.ok());
  for (const io::DirEntry& entry : *names) {
    const std::string source = from + "/" + entry.name, place = to + "/" + entry.name;
    if (entry.is_directory)
      copy_folder(fs, source, place);
    else
      write(fs, place, *fs.read_file(source));
  }
}

TEST_CASE("data set: other tokens whose CRC-32C fit are not those of the ledger's SHA-256") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  DataOptions options = corpus_options("corpus");
  options.validation_fraction = 0;  // which rows are held out depends on their texts
  const auto honest = build_store(fs, options, test_tokenizer(), small_settings());
  REQUIRE(honest.ok());
  const std::string folder = options.cache_dir, data = "/train/input_ids/data";
  // The ids of a corpus in which one letter, which is a token of its own, is another, and a chunk table that
  // fits them.
  const auto files = fs.glob("corpus/**");
  REQUIRE(files.ok());
  for (const auto& file : *files) {
    std::string text = *fs.read_file(file);
    std::replace(text.begin(), text.end(), '\xa9', '\xa8');  // of "été"
    write(fs, file, text);
  }
  DataOptions other = options;
  other.cache_dir = folder + "-other";
  const auto changed = build_store(fs, other, test_tokenizer(), small_settings());
  REQUIRE(changed.ok());
  REQUIRE(changed->split(Split::kTrain).tokens == honest->split(Split::kTrain).tokens);
  check_ok(fs.remove_all(folder + data));
  copy_folder(fs, other.cache_dir + data, folder + data);
  StoreLedger forged = *honest;
  ArrayLedger& ids = forged.split(Split::kTrain).array(ArrayId::kData);
  ids.crc32c = changed->split(Split::kTrain).array(ArrayId::kData).crc32c;
  check_ok(write_chunk_tables(fs, folder, forged, honest->hash()));
  const auto read = [&] {
    const auto store = TokenStore::open(fs, folder);
    REQUIRE_MESSAGE(store.ok(), store.error().message());
    std::vector<int32_t> tokens(static_cast<size_t>((*store)->split(Split::kTrain).tokens()));
    const Status status = (*store)->split(Split::kTrain).read(0, tokens);
    return status.ok() ? std::string() : status.error().message();
  };
  const std::string error = read();
  CHECK_MESSAGE(error.find("has SHA-256 ") != std::string::npos, error);
  CHECK_MESSAGE(error.find("chunk ") != std::string::npos, error);
  // Without the digests only reading the whole store shows it.
  check_ok(fs.remove(folder + "/chunks.sha256"));
  CHECK(read() == "");
  const auto open = [&] { return DataSet::of(*TokenStore::open(fs, folder)); };
  CHECK(!*open()->parts()[0].store->has_digests());
  const auto set = DataSet::open(fs, options, test_tokenizer());
  REQUIRE_MESSAGE(set.ok(), set.error().message());
  const Status whole = (*set)->check_contents();
  REQUIRE(!whole.ok());
  CHECK_MESSAGE(whole.error().message().find("SHA-256") != std::string::npos, whole.error().message());
}

}  // namespace
}  // namespace ostro::data
