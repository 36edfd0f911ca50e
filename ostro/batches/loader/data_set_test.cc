#include "ostro/batches/loader/data_set.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {
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
      prepare::write(fs, place, *fs.read_file(source));
  }
}

TEST_CASE("data set: other tokens whose CRC-32C fit are not those of the ledger's SHA-256") {
  io::MemoryFileSystem fs;
  prepare::write_corpus(fs, "corpus");
  data::DataOptions options = prepare::corpus_options("corpus");
  options.validation_fraction = 0;  // which rows are held out depends on their texts
  const auto honest = prepare::build_store(fs, options, prepare::test_tokenizer(), prepare::small_settings());
  REQUIRE(honest.ok());
  const std::string folder = options.cache_dir, data = "/train/input_ids/data";
  // The ids of a corpus in which one letter, which is a token of its own, is another, and a chunk table that
  // fits them.
  const auto files = fs.glob("corpus/**");
  REQUIRE(files.ok());
  for (const auto& file : *files) {
    std::string text = *fs.read_file(file);
    std::replace(text.begin(), text.end(), '\xa9', '\xa8');  // of "été"
    prepare::write(fs, file, text);
  }
  data::DataOptions other = options;
  other.cache_dir = folder + "-other";
  const auto changed = prepare::build_store(fs, other, prepare::test_tokenizer(), prepare::small_settings());
  REQUIRE(changed.ok());
  REQUIRE(changed->split(data::Split::kTrain).tokens == honest->split(data::Split::kTrain).tokens);
  check_ok(fs.remove_all(folder + data));
  copy_folder(fs, other.cache_dir + data, folder + data);
  data::StoreLedger forged = *honest;
  data::ArrayLedger& ids = forged.split(data::Split::kTrain).array(data::ArrayId::kData);
  ids.crc32c = changed->split(data::Split::kTrain).array(data::ArrayId::kData).crc32c;
  check_ok(data::write_chunk_tables(fs, folder, forged, honest->hash()));
  const auto read = [&] {
    const auto store = data::TokenStore::open(fs, folder);
    REQUIRE_MESSAGE(store.ok(), store.error().message());
    std::vector<int32_t> tokens(static_cast<size_t>((*store)->split(data::Split::kTrain).tokens()));
    const Status status = (*store)->split(data::Split::kTrain).read(0, tokens);
    return status.ok() ? std::string() : status.error().message();
  };
  const std::string error = read();
  CHECK_MESSAGE(error.find("has SHA-256 ") != std::string::npos, error);
  CHECK_MESSAGE(error.find("chunk ") != std::string::npos, error);
  // Without the digests only reading the whole store shows it.
  check_ok(fs.remove(folder + "/chunks.sha256"));
  CHECK(read() == "");
  const auto open = [&] { return DataSet::of(*data::TokenStore::open(fs, folder)); };
  CHECK(!*open()->parts()[0].store->has_digests());
  const auto set = DataSet::open(fs, options, prepare::test_tokenizer());
  REQUIRE_MESSAGE(set.ok(), set.error().message());
  const Status whole = (*set)->check_contents();
  REQUIRE(!whole.ok());
  CHECK_MESSAGE(whole.error().message().find("SHA-256") != std::string::npos, whole.error().message());
}

}  // namespace
}  // namespace ostro::batches
