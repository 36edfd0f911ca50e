// Batches of stores with too many chunks to hold all sums in memory, and more files than a process may open.
#include <doctest/doctest.h>
#include <unistd.h>

#include "ostro/batches/loader/loader.h"
#include "ostro/batches/order/order.h"
#include "ostro/data/store/sparse_store_for_test.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

namespace ostro::batches {
namespace {

constexpr int64_t kSeqLen = 24, kBatchSize = 32;

// A folder that goes with the test.
struct Folder {
  std::filesystem::path path;
  explicit Folder(const char* name)
      : path(std::filesystem::temp_directory_path() / fmt::format("ostro_{}_{}", name, getpid())) {
    std::filesystem::remove_all(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

data::SparseStore many_chunks(int64_t chunks) {
  data::SparseStore store{.tokens = 64 * chunks,
                          .row_tokens = 10,
                          .files = 7,
                          .layout = {.chunk = 64, .shard = 256},
                          .preprocessing = {}};
  store.tokens -= store.tokens % store.row_tokens;
  store.preprocessing.tokenizer = std::string(64, '0');
  store.preprocessing.vocab_size = 70'000;
  store.preprocessing.text_key = "text";
  return store;
}

// The sequences of a step's batch in a full shuffle.
std::vector<int64_t> sequences_of(const data::SparseStore& store, int64_t step) {
  const SequenceOrder order(data_key(0), (store.tokens - 1) / kSeqLen, {true});
  std::vector<int64_t> sequences;
  for (int64_t i = 0; i < kBatchSize; ++i) sequences.push_back(order(step * kBatchSize + i));
  return sequences;
}

void make(const data::SparseStore& store, const std::string& folder, int64_t step) {
  std::vector<int64_t> positions;
  for (const int64_t sequence : sequences_of(store, step))
    for (int64_t at = 0; at <= kSeqLen; ++at) positions.push_back(sequence * kSeqLen + at);
  check_ok(data::make_sparse_store(store, folder, positions));
}

int64_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST_CASE("chunk table: a batch of a store with thousands of shards is what the store holds, with its rows") {
  const Folder folder("chunk_table");
  constexpr int64_t kStep = 321;
  const data::SparseStore store = many_chunks(5000);
  make(store, folder.path, kStep);
  auto cache = std::make_shared<data::ChunkCache>(4096);
  const auto opened = data::TokenStore::open(io::local_file_system(), folder.path, cache);
  REQUIRE(opened.ok());
  const auto loader = Loader::create(DataSet::of(*opened), data::DataOptions{}, kSeqLen, kBatchSize, 0);
  REQUIRE(loader.ok());
  const auto batch = loader->batch(kStep);
  REQUIRE(batch.ok());
  CHECK(batch->sequences == sequences_of(store, kStep));
  for (size_t row = 0; row < kBatchSize; ++row) {
    const int64_t first = batch->sequences[row] * kSeqLen;
    for (int64_t i = 0; i < kSeqLen; ++i) {
      const size_t at = row * kSeqLen + static_cast<size_t>(i);
      CHECK(batch->tokens[at] == store.token(first + i));
      CHECK(batch->targets[at] == store.token(first + i + 1));
    }
    const auto documents = loader->reader().documents(batch->sequences[row]);
    REQUIRE(documents.ok());
    int64_t at = first;
    for (const DocumentSpan& d : *documents) {
      CHECK(d.row == at / store.row_tokens);
      CHECK(d.source.document == store.element(data::ArrayId::kDocument, d.row));
      CHECK(d.source.file == fmt::format("corpus/{:05}.jsonl", d.row / ((store.rows() + 6) / 7)));
      CHECK(d.first_token == at % store.row_tokens);
      at = first + d.end;
    }
    CHECK(at == first + kSeqLen);
  }
  // All of it, in bounded memory and files.
  const data::TokenStream& stream = (*opened)->split(data::Split::kTrain);
  std::vector<int32_t> tokens(static_cast<size_t>(stream.tokens()));
  const int64_t before = open_files();
  check_ok(stream.read(0, tokens));
  CHECK(open_files() <= before + 256);
  CHECK(cache->cost() <= 4096);
  bool same = true;
  for (size_t i = 0; i < tokens.size(); ++i) same &= tokens[i] == store.token(static_cast<int64_t>(i));
  CHECK(same);
}

TEST_CASE("chunk table: opening a store costs the same whatever its length") {
  std::vector<io::CountingFileSystem::Counts> seen;
  for (const int64_t chunks : {300, 30'000}) {
    const Folder folder("chunk_table_length");
    data::SparseStore store = many_chunks(chunks);
    store.layout.shard = 64 * 256;
    make(store, folder.path, 1);
    io::CountingFileSystem fs(io::local_file_system());
    REQUIRE(data::TokenStore::open(fs, folder.path).ok());
    seen.push_back(fs.counts());
  }
  CHECK(seen[0].opens == seen[1].opens);
  CHECK(seen[0].reads == seen[1].reads);
  CHECK(seen[1].bytes_read - seen[0].bytes_read < 200);  // digits
}

}  // namespace
}  // namespace ostro::batches
