// Time from nothing in memory to one batch: opens a store, makes a loader and the batch of a step far away,
// each time anew (the files are in the operating system's cache).
//
//   data_bench [folder]     makes a store of 16 million random tokens there once (default: data_bench_store)
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "ostro/data/array_writer.h"
#include "ostro/data/loader.h"
#include "ostro/io/counting_file_system.h"
#include "ostro/io/local_file_system.h"
#include "ostro/numerics/threefry.h"

namespace {

using namespace ostro;
using namespace ostro::data;

constexpr int64_t kTokens = 16 << 20, kDocumentTokens = 700, kVocab = 32000;

Status write_array(io::FileSystem& fs, const std::string& cache, Split split, ArrayId id,
                   const std::vector<int64_t>& values, StoreLedger& ledger) {
  const std::vector<ArrayPlace> places = ledger.places();
  const auto place =
      std::find_if(places.begin(), places.end(), [id](const ArrayPlace& p) { return p.id == id; });
  ASSIGN_OR_RETURN(ArrayWriter writer,
                   ArrayWriter::create(fs, array_folder(cache, ledger, split, *place), {}));
  RETURN_IF_ERROR(writer.append(std::span(values)));
  RETURN_IF_ERROR(writer.commit());
  ledger.split(split).array(id) =
      array_ledger(id, writer.type(), writer.elements(), writer.chunk(), writer.all_chunks());
  return {};
}

Status make_store(io::FileSystem& fs, const std::string& cache) {
  StoreLedger ledger;
  ledger.preprocessing.tokenizer = std::string(64, '0');
  ledger.preprocessing.vocab_size = kVocab;
  ledger.preprocessing.text_key = "text";
  FileLedger file;
  file.source.path = "random";
  file.sha256 = std::string(64, '0');
  for (const Split split : kSplits) {
    const int64_t tokens = split == Split::kTrain ? kTokens : kDocumentTokens;
    std::vector<int64_t> data, offsets = {0}, documents, bytes;
    for (int64_t i = 0; i < tokens; ++i)
      data.push_back(numerics::random_bits(numerics::key_from_seed(1), static_cast<uint64_t>(i)) % kVocab);
    for (int64_t end = 0; end < tokens;) {
      end = std::min(end + kDocumentTokens, tokens);
      offsets.push_back(end);
      documents.push_back(static_cast<int64_t>(documents.size()) + 1);
      bytes.push_back(4 * kDocumentTokens);
    }
    SplitLedger& s = ledger.split(split);
    s.tokens = tokens;
    s.rows = offsets[0] = static_cast<int64_t>(documents.size());
    file.rows[static_cast<size_t>(split)] = s.rows;
    RETURN_IF_ERROR(write_array(fs, cache, split, ArrayId::kData, data, ledger));
    RETURN_IF_ERROR(write_array(fs, cache, split, ArrayId::kOffsets, offsets, ledger));
    RETURN_IF_ERROR(write_array(fs, cache, split, ArrayId::kDocument, documents, ledger));
    RETURN_IF_ERROR(write_array(fs, cache, split, ArrayId::kBytes, bytes, ledger));
  }
  ledger.files.push_back(file);
  return write_ledger(fs, cache, ledger);
}

Status bench(const std::string& cache, int64_t batch_size, int64_t seq_len, int threads) {
  io::CountingFileSystem fs(io::local_file_system());
  std::vector<double> milliseconds;
  for (int round = 0; round < 15; ++round) {
    fs.reset();
    const auto begin = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(auto store, TokenStore::open(fs, cache));
    ASSIGN_OR_RETURN(const Loader loader,
                     Loader::create(DataSet::of(store), DataOptions{}, seq_len, batch_size, 0));
    ASSIGN_OR_RETURN(const Batch batch, loader.batch(1'000'000 + round, threads));
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  fmt::print(
      "{:3} sequences of {:5} tokens at step 1,000,000, {} threads: {:6.1f} ms (fastest {:.1f}), {} reads, "
      "{:.1f} MB\n",
      batch_size, seq_len, threads, milliseconds[milliseconds.size() / 2], milliseconds.front(),
      fs.counts().reads, static_cast<double>(fs.counts().bytes_read) * 1e-6);
  return {};
}

Status run(const std::string& cache) {
  io::FileSystem& fs = io::local_file_system();
  ASSIGN_OR_RETURN(const bool exists, fs.exists(ledger_path(cache)));
  if (!exists) RETURN_IF_ERROR(make_store(fs, cache));
  for (const int threads : {1, static_cast<int>(std::thread::hardware_concurrency())}) {
    RETURN_IF_ERROR(bench(cache, 16, 256, threads));
    RETURN_IF_ERROR(bench(cache, 16, 1024, threads));
    RETURN_IF_ERROR(bench(cache, 64, 1024, threads));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "data_bench_store");
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
