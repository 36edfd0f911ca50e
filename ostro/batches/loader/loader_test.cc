#include "ostro/batches/loader/loader.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ostro/batches/loader/eval_loader.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

namespace {

struct Fixture {
  io::MemoryFileSystem memory;
  io::CountingFileSystem fs{memory};
  DataOptions options = corpus_options("corpus");
  std::shared_ptr<const TokenStore> store;

  Fixture() {
    write_corpus(memory, "corpus");
    REQUIRE(build_store(memory, options, test_tokenizer(), small_settings()).ok());
    store = *TokenStore::open(fs, options.cache_dir);
  }

  Loader loader(int64_t seq_len, int64_t batch_size, uint64_t seed = 0) const {
    auto made = Loader::create(DataSet::of(store), options, seq_len, batch_size, seed);
    REQUIRE(made.ok());
    return std::move(*made);
  }
};

}  // namespace

TEST_CASE("loader: an epoch has every sequence once, each epoch in another order") {
  Fixture f;
  const Loader loader = f.loader(16, 5);
  const int64_t n = loader.sequences();
  REQUIRE(n > 50);
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t step = 0; step * 5 < 3 * n; ++step) {
    const auto batch = loader.batch(step);
    REQUIRE(batch.ok());
    for (int64_t j = 0; j < 5; ++j)
      if (const int64_t e = step * 5 + j; e < 3 * n)
        epochs[static_cast<size_t>(e / n)].push_back(batch->sequences[static_cast<size_t>(j)]);
  }
  for (const auto& epoch : epochs) {
    CHECK(std::set<int64_t>(epoch.begin(), epoch.end()).size() == static_cast<size_t>(n));
    CHECK_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST_CASE("loader: tokens and targets are the stream's, shifted by one") {
  Fixture f;
  const Loader loader = f.loader(16, 5);
  for (const int64_t step : {0, 1, 77, 123456}) {
    const Batch batch = *loader.batch(step);
    for (int64_t row = 0; row < 5; ++row) {
      std::vector<int32_t> window(17);
      check_ok(f.store->split(Split::kTrain).read(batch.sequences[static_cast<size_t>(row)] * 16, window));
      for (int64_t i = 0; i < 16; ++i) {
        const auto at = static_cast<size_t>(row * 16 + i), w = static_cast<size_t>(i);
        CHECK(batch.tokens[at] == window[w]);
        CHECK(batch.targets[at] == window[w + 1]);
        CHECK(batch.loss_mask[at] == 1.0f);
      }
    }
  }
}

TEST_CASE("loader: a batch is a function of seed, batch size and step") {
  Fixture f;
  const Loader a = f.loader(16, 6), b = f.loader(16, 6), other = f.loader(16, 6, 1);
  check_ok([&]() -> Status { return b.batch(9).ok() ? Status() : Status(io_error("")); }());
  for (const int64_t step : {3, 0, 1000}) {
    const std::string fingerprint = batch_fingerprint(*a.batch(step));
    CHECK(fingerprint == batch_fingerprint(*b.batch(step)));
    CHECK(fingerprint != batch_fingerprint(*other.batch(step)));
    CHECK(fingerprint != batch_fingerprint(*a.batch(step + 1)));
    // Another batch size reads the same examples.
    const Batch whole = *a.batch(step), half = *f.loader(16, 3).batch(2 * step + 1);
    CHECK(std::equal(half.tokens.begin(), half.tokens.end(), whole.tokens.begin() + 48));
    // A worker's rows.
    const Batch rows = *a.rows(step, 2, 5);
    CHECK(std::equal(rows.tokens.begin(), rows.tokens.end(), whole.tokens.begin() + 32));
    // The same in their places; the other rows are padding, or as they were.
    const Batch some = *a.batch_with(step, {{0, 1}, {3, 5}});
    for (const int64_t row : {0, 1, 2, 3, 4, 5}) {
      const auto begin = whole.tokens.begin() + 16 * row;
      const bool read = row == 0 || row == 3 || row == 4;
      CHECK(std::equal(begin, begin + 16, some.tokens.begin() + 16 * row) == read);
      CHECK((some.sequences[static_cast<size_t>(row)] == whole.sequences[static_cast<size_t>(row)]) == read);
    }
    CHECK(a.batch_with(step, {{1, 3}, {5, 6}}, 1, some)->tokens == whole.tokens);
  }
}

TEST_CASE("loader: stored order, and permutation within eras") {
  Fixture f;
  f.options.shuffle.value = false;
  const Loader stored = f.loader(16, 4);
  for (int64_t step = 0; step < 5; ++step)
    CHECK(stored.batch(step)->sequences ==
          std::vector<int64_t>{4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3});
  f.options.shuffle.value = int64_t{10};
  const Loader eras = f.loader(16, 1);
  const int64_t n = eras.sequences();
  REQUIRE(n % 10 != 0);
  bool moved = false;
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t begin = 0; begin < n; begin += 10) {
      const int64_t end = std::min(n, begin + 10);
      std::set<int64_t> seen;
      for (int64_t p = begin; p < end; ++p) {
        const int64_t sequence = eras.batch(epoch * n + p)->sequences[0];
        CHECK(sequence >= begin);
        CHECK(sequence < end);
        moved = moved || sequence != p;
        seen.insert(sequence);
      }
      CHECK(static_cast<int64_t>(seen.size()) == end - begin);
    }
  CHECK(moved);
}

TEST_CASE("loader: step 1,000,000 reads a few chunks, no scan") {
  Fixture f;
  const Loader loader = f.loader(16, 8);
  f.fs.reset();
  const auto batch = loader.batch(1'000'000);
  REQUIRE(batch.ok());
  // A sequence of 17 tokens lies in at most 2 chunks of 64. Every file of 256 tokens is opened once for its
  // index.
  CHECK(f.fs.counts().reads <= 8 * 2 + 8 * 2);
  CHECK(f.fs.counts().lists == 0);
  // Any number of threads gives the same batch, even more threads than rows.
  for (const int threads : {2, 3, 8, 20}) {
    const Fixture again;
    const auto other = again.loader(16, 8).batch(1'000'000, threads);
    REQUIRE(other.ok());
    CHECK(batch_fingerprint(*other) == batch_fingerprint(*batch));
    CHECK(other->sequences == batch->sequences);
  }
  f.fs.reset();
  for (const int64_t sequence : batch->sequences) REQUIRE(loader.reader().documents(sequence).ok());
  CHECK(f.fs.counts().reads <= 8 * 8);
}

TEST_CASE("loader: with a block shuffle a chunk is decoded once a window") {
  Fixture f;
  constexpr int64_t kBlock = 32, kWindow = 128;  // sequences; 8 of 8 tokens are a chunk
  f.options.shuffle.value = std::variant<BlockShuffle>(BlockShuffle{kBlock, kWindow / kBlock});
  // Every block begins with a chunk, and its last target is in the next chunk.
  const size_t room = (kWindow / 8 + kWindow / kBlock) * 64 * sizeof(uint16_t);
  REQUIRE(static_cast<size_t>(f.store->split(Split::kTrain).tokens()) * sizeof(uint16_t) > 2 * room);
  int64_t most = 0;  // decodes of an epoch
  const auto reads = [&](const Result<std::shared_ptr<const TokenStore>>& store) {
    REQUIRE(store.ok());
    const auto loader = Loader::create(DataSet::of(*store), f.options, 8, 1, 0);
    REQUIRE(loader.ok());
    most = 0;
    f.fs.reset();
    for (int64_t begin = 0; begin < loader->sequences(); begin += kWindow) {
      std::set<int64_t> chunks;
      for (int64_t step = begin; step < std::min(begin + kWindow, loader->sequences()); ++step) {
        const auto batch = loader->batch(step);
        REQUIRE(batch.ok());
        const int64_t token = batch->sequences[0] * 8;
        chunks.insert({token / 64, (token + 8) / 64});
      }
      most += static_cast<int64_t>(chunks.size());
    }
    return f.fs.counts().reads;
  };
  const auto cache = [&](size_t bytes) { return std::make_shared<ChunkCache>(bytes); };
  const auto open = [&](size_t bytes) {
    return TokenStore::open(f.fs, f.options, components_of(f.options)[0], test_tokenizer(), cache(bytes));
  };
  // If the cache has room for all chunks, every chunk is read once, and nothing is read more often than with
  // less room.
  const int64_t chunks = (f.store->split(Split::kTrain).tokens() + 63) / 64,
                others = reads(open(1 << 20)) - chunks;
  CHECK(others >= 0);
  const int64_t decodes = reads(open(room)) - others;
  CHECK(decodes >= chunks);
  CHECK(decodes <= most);
  // When chunks are kept as for a full shuffle, most of them are decoded twice.
  const int64_t late =
      reads(TokenStore::open(f.fs, f.options.cache_dir, cache(room), KeepChunks::kSecondTime)) - others;
  CHECK(2 * late > 3 * decodes);
}

TEST_CASE("loader: too few tokens are told where the list of source files is damaged, too") {
  Fixture f;
  nlohmann::json json = nlohmann::json::parse(*f.memory.read_file(ledger_path(f.options.cache_dir)));
  json["sources"][0]["format"] = "parquet";
  write(f.memory, ledger_path(f.options.cache_dir), with_checksum(json));
  const auto store = TokenStore::open(f.fs, f.options.cache_dir);
  REQUIRE(store.ok());
  const auto made = Loader::create(DataSet::of(*store), f.options, 1 << 20, 1, 0);
  REQUIRE(!made.ok());
  CHECK(made.error().message().find("are too few") != std::string::npos);
  CHECK(made.error().message().find("\"hash\" does not fit \"files\" and \"sources\"") != std::string::npos);
}

TEST_CASE("loader: segments and sources agree with the documents") {
  Fixture f;
  f.options.block_cross_document_attention = true;
  const Loader loader = f.loader(40, 3);
  bool several = false;
  for (int64_t step = 0; step < 20; ++step) {
    const Batch batch = *loader.batch(step);
    for (int64_t row = 0; row < 3; ++row) {
      const auto spans = loader.reader().documents(batch.sequences[static_cast<size_t>(row)]);
      REQUIRE(spans.ok());
      several = several || spans->size() > 2;
      int64_t at = 0;
      int32_t segment = 0;
      for (const DocumentSpan& span : *spans) {
        CHECK(span.begin == at);
        if (span.begin > 0) {  // a document begins behind the one before it, which ended with eos
          CHECK(span.first_token == 0);
          CHECK(batch.tokens[static_cast<size_t>(row * 40 + at - 1)] ==
                static_cast<int32_t>(*test_tokenizer().eos_id()));
        }
        for (; at < span.end; ++at) CHECK(batch.segment_ids[static_cast<size_t>(row * 40 + at)] == segment);
        ++segment;
      }
      CHECK(at == 40);
    }
  }
  CHECK(several);
}

TEST_CASE("loader: too little text for one batch is an error that says how much is there and needed") {
  Fixture f;
  const int64_t tokens = f.store->split(Split::kTrain).tokens();
  const auto made = Loader::create(DataSet::of(f.store), f.options, 100, tokens / 100 + 1, 0);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message().find(std::to_string(tokens) + " tokens") != std::string::npos);
  CHECK(made.error().message().find(std::to_string((tokens / 100 + 1) * 100 + 1)) != std::string::npos);
  CHECK(Loader::create(DataSet::of(f.store), f.options, 100, (tokens - 1) / 100, 0).ok());
}

TEST_CASE("evaluation: every target once, in order, the last batch padded") {
  Fixture f;
  const TokenStream& stream = f.store->split(Split::kValidation);
  const auto loader = EvalLoader::create(*DataSet::of(f.store), 0, f.options, 24, 4, std::nullopt);
  REQUIRE(loader.ok());
  std::vector<int32_t> targets;
  int64_t padding = 0;
  for (int64_t i = 0; i < loader->batches(); ++i) {
    const Batch batch = *loader->batch(i);
    REQUIRE(batch.tokens.size() == 96);
    for (size_t k = 0; k < 96; ++k)
      if (batch.loss_mask[k] != 0)
        targets.push_back(batch.targets[k]);
      else
        ++padding;
  }
  std::vector<int32_t> all(static_cast<size_t>(stream.tokens()));
  check_ok(stream.read(0, all));
  CHECK(targets == std::vector<int32_t>(all.begin() + 1, all.end()));
  CHECK(padding == loader->batches() * 96 - (stream.tokens() - 1));
  CHECK(EvalLoader::create(*DataSet::of(f.store), 0, f.options, 24, 4, 2)->batches() == 2);
  const SplitLedger& split = f.store->ledger().split(Split::kValidation);
  CHECK(loader->bits_per_byte(std::log(2.0)) ==
        doctest::Approx(static_cast<double>(split.tokens) / static_cast<double>(split.bytes)));
}
