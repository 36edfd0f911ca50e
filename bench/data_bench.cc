// Batches out of token stores, whose files are in the operating system's cache.
//
//   data_bench FOLDER first         from nothing in memory to one batch of a store of 16 million tokens, in
//                                   several sizes, each time anew
//   data_bench FOLDER far THREADS   the same once, for 64 x 2048 at step 1,419,999 of 12.75 * 10^12 tokens:
//                                   milliseconds to the batch, milliseconds for the documents of its
//                                   sequences, largest memory of the process in MiB, and its fingerprint
//   data_bench FOLDER gather MIB    serves data_gather.py: shuffled batches of 64 x 2048 of the smaller
//                                   store with MIB for decoded chunks; commands on standard input, serve()
//
// A store is made in FOLDER when it is first needed; TOKENIZER=tokenizer.json makes the larger one a
// component's of that tokenizer, so that `ostro data batch` reads it.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "ostro/batches/loader/loader.h"
#include "ostro/data/store/sparse_store_for_test.h"
#include "ostro/data/store/store_plan.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/tokenizer/files/files.h"

namespace {

using namespace ostro;
using namespace ostro::batches;
using namespace ostro::data;
using namespace ostro::prepare;

constexpr int64_t kBatch = 64, kSeqLen = 2048, kFarStep = 1'419'999;

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

Preprocessing plain(int64_t vocab_size) {
  Preprocessing p;
  p.tokenizer = std::string(64, '0');
  p.vocab_size = vocab_size;
  p.text_key = "text";
  return p;
}

Result<std::string> near_store(const std::string& folder) {
  const std::string cache = folder + "/near";
  ASSIGN_OR_RETURN(const bool exists, io::local_file_system().exists(ledger_path(cache)));
  if (!exists) {
    const SparseStore store{.tokens = 16 << 20,
                            .row_tokens = 512,
                            .ids = ElementType::kInt64,
                            .layout = {},
                            .preprocessing = plain(50'257)};
    RETURN_IF_ERROR(make_sparse_store(store, cache, {}));
  }
  return cache;
}

Result<std::string> far_store(const std::string& folder) {
  const std::string cache = folder + "/far";
  io::FileSystem& fs = io::local_file_system();
  ASSIGN_OR_RETURN(const bool exists, fs.exists(ledger_path(cache)));
  if (exists) return cache;
  SparseStore store{
      .tokens = 12'750'000'000'000, .files = 1000, .layout = {}, .preprocessing = plain(128'256)};
  numerics::Key key = data_key(0);
  if (const char* path = std::getenv("TOKENIZER")) {
    ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, tokenizer::load_tokenizer(fs, path));
    DataOptions options;
    options.tokenizer = path;
    options.components["far"].cache_dir = cache;
    ASSIGN_OR_RETURN(store.preprocessing,
                     preprocessing_of(fs, options, components_of(options)[0], tokenizer));
    key = numerics::fold_in(numerics::fold_in(key, "components"), "far");
  }
  const SequenceOrder order(key, (store.tokens - 1) / kSeqLen, {true});
  std::vector<int64_t> positions;
  for (int64_t row = 0; row < kBatch; ++row)
    for (int64_t at = 0; at <= kSeqLen; at += store.row_tokens / 2)
      positions.push_back(order(kFarStep * kBatch + row) * kSeqLen + at);
  RETURN_IF_ERROR(make_sparse_store(store, cache, positions));
  return cache;
}

Status first(const std::string& cache, int64_t batch_size, int64_t seq_len, int threads) {
  io::CountingFileSystem fs(io::local_file_system());
  std::vector<double> milliseconds;
  for (int round = 0; round < 15; ++round) {
    fs.reset();
    const auto begin = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(auto store, TokenStore::open(fs, cache));
    ASSIGN_OR_RETURN(const Loader loader,
                     Loader::create(DataSet::of(store), DataOptions{}, seq_len, batch_size, 0));
    ASSIGN_OR_RETURN(const Batch batch, loader.batch(1'000'000 + round, threads));
    milliseconds.push_back(milliseconds_since(begin));
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  fmt::print(
      "{:3} sequences of {:5} tokens at step 1,000,000, {} threads: {:6.1f} ms (fastest {:.1f}), {} reads, "
      "{:.1f} MB\n",
      batch_size, seq_len, threads, milliseconds[milliseconds.size() / 2], milliseconds.front(),
      fs.counts().reads, static_cast<double>(fs.counts().bytes_read) * 1e-6);
  return {};
}

// Largest memory of this process. getrusage would count that of the process which started it, too.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> word) return std::stod(word) / 1024;
  return 0;
}

Status far(const std::string& cache, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(auto store, TokenStore::open(io::local_file_system(), cache));
  const double opened = milliseconds_since(begin);
  ASSIGN_OR_RETURN(const Loader loader,
                   Loader::create(DataSet::of(store), DataOptions{}, kSeqLen, kBatch, 0));
  ASSIGN_OR_RETURN(const Batch batch, loader.batch(kFarStep, threads));
  const double made = milliseconds_since(begin);
  for (const int64_t sequence : batch.sequences) {
    const auto documents = loader.reader().documents(sequence);
    if (!documents.ok()) return documents.error();
  }
  const double explained = milliseconds_since(begin) - made;
  fmt::print("{:.3f} {:.3f} {:.3f} {:.1f} {}\n", made, opened, explained, peak_mib(),
             batch_fingerprint(batch));
  return {};
}

template <typename T>
void write(const std::string& path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}

// "export FOLDER STEPS" writes the stream's ids (ids.i32) and the sequences of the first steps (order.i64);
// "batch STEP FILE" writes tokens and targets; "time FIRST COUNT" prints the milliseconds a batch of those
// steps takes, one after the other in one thread. Each ends in a line of output.
Status serve(const std::string& cache, size_t mib) {
  ASSIGN_OR_RETURN(auto store,
                   TokenStore::open(io::local_file_system(), cache, std::make_shared<ChunkCache>(mib << 20)));
  ASSIGN_OR_RETURN(const Loader loader,
                   Loader::create(DataSet::of(store), DataOptions{}, kSeqLen, kBatch, 0));
  std::string command;
  while (std::cin >> command) {
    if (command == "export") {
      std::string folder;
      int64_t steps = 0;
      std::cin >> folder >> steps;
      std::vector<int32_t> ids(static_cast<size_t>(store->split(Split::kTrain).tokens()));
      RETURN_IF_ERROR(store->split(Split::kTrain).read(0, ids));
      std::vector<int64_t> order;
      for (int64_t i = 0; i < steps * kBatch; ++i) order.push_back(loader.place(i).sequence);
      write(folder + "/ids.i32", ids);
      write(folder + "/order.i64", order);
      std::cout << "exported" << std::endl;
    } else if (command == "batch") {
      int64_t step = 0;
      std::string path;
      std::cin >> step >> path;
      ASSIGN_OR_RETURN(const Batch batch, loader.batch(step));
      std::vector<int32_t> both = batch.tokens;
      both.insert(both.end(), batch.targets.begin(), batch.targets.end());
      write(path, both);
      std::cout << "written" << std::endl;
    } else if (command == "time") {
      int64_t from = 0, count = 1;
      std::cin >> from >> count;
      const auto begin = std::chrono::steady_clock::now();
      Batch batch;  // its memory is used again, as in training
      for (int64_t step = from; step < from + count; ++step) {
        ASSIGN_OR_RETURN(batch, loader.batch(step, 1, std::move(batch)));
        if (batch.tokens.empty()) return invalid_argument("an empty batch");
      }
      std::cout << milliseconds_since(begin) / static_cast<double>(count) << std::endl;
    } else {
      return invalid_argument("unknown command " + command);
    }
  }
  return {};
}

Status run(const std::string& folder, const std::string& mode, int number) {
  if (mode == "far") {
    ASSIGN_OR_RETURN(const std::string cache, far_store(folder));
    return far(cache, number);
  }
  ASSIGN_OR_RETURN(const std::string cache, near_store(folder));
  if (mode == "gather") return serve(cache, static_cast<size_t>(number));
  if (mode != "first") return invalid_argument("unknown mode " + mode);
  for (const int threads : {1, static_cast<int>(std::thread::hardware_concurrency())}) {
    RETURN_IF_ERROR(first(cache, 16, 256, threads));
    RETURN_IF_ERROR(first(cache, 16, 1024, threads));
    RETURN_IF_ERROR(first(cache, 64, 1024, threads));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: data_bench FOLDER first | far THREADS | gather MIB\n");
    return 2;
  }
  const Status status = run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 1);
  if (!status.ok()) fmt::print(stderr, "error: {}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
