#include "ostro/data/store_verify.h"

#include <fmt/core.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "ostro/data/token_store.h"

namespace ostro::data {

Result<std::vector<ChunkSum>> checked_sums(io::FileSystem& fs, const std::string& path, ArrayId id,
                                           const ArrayLedger& expected, const ChunkTable& table, bool sparse,
                                           int threads,
                                           const std::function<void(const ChunkElements&)>& read) {
  ASSIGN_OR_RETURN(const VerifiedArray array,
                   VerifiedArray::open(fs, path, expected, table, std::make_shared<ChunkCache>(size_t{0}),
                                       {.sparse = sparse}));
  std::vector<ChunkSum> sums(static_cast<size_t>(table.chunks()));
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  Status failed;
  int64_t failed_at = table.chunks();
  const auto work = [&] {
    for (int64_t i = next++; i < table.chunks(); i = next++) {
      const auto chunk = array.chunk(i);
      if (chunk.ok()) sums[static_cast<size_t>(i)] = sum_chunk((*chunk)->type, (*chunk)->bytes);
      const std::lock_guard lock(mutex);
      if (!chunk.ok()) {
        // Chunks before it were taken before it, so the first damaged one is told, whatever the threads.
        if (i < failed_at) failed = chunk.error();
        failed_at = std::min(failed_at, i);
        next = table.chunks();
        return;
      }
      if (read) read(**chunk);
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  RETURN_IF_ERROR(failed);
  const ArrayLedger actual = array_ledger(id, expected.type, expected.elements, expected.chunk, sums);
  if (actual.sha256 != expected.sha256)
    return corrupt(fmt::format("damaged token store: {}: SHA-256 {}, the ledger says {}", path, actual.sha256,
                               expected.sha256));
  return sums;
}

Result<StoreReport> verify_arrays(io::FileSystem& fs, const std::string& cache_dir,
                                  const VerifySettings& settings) {
  ASSIGN_OR_RETURN(const StoreLedger ledger, read_ledger(fs, cache_dir));
  StoreReport report{.ledger_hash = ledger.hash(), .arrays = {}};
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger, report.ledger_hash));
  const bool foreign = !ledger.levanter_cache.empty();
  struct Task {
    Split split;
    ArrayId id;
  };
  std::vector<Task> tasks;
  BuildProgress progress;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places()) {
      const ArrayLedger& expected = ledger.split(split).array(place.id);
      if (expected.elements == 0 && foreign) continue;  // absent
      const int64_t bytes = expected.elements * static_cast<int64_t>(element_bytes(expected.type));
      tasks.push_back({split, place.id});
      report.arrays.push_back(
          {array_folder(cache_dir, ledger, split, place), expected.elements, bytes, Status()});
      progress.bytes_total += bytes;
      ++progress.files_total;
    }
  int64_t finished = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto& [split, id] = tasks[i];
    VerifiedArrayReport& array = report.arrays[i];
    const auto sums =
        checked_sums(fs, array.path, id, ledger.split(split).array(id), tables->table(split, id), foreign,
                     settings.threads, [&, id = id](const ChunkElements& chunk) {
                       progress.bytes_done += static_cast<int64_t>(chunk.bytes.size());
                       if (id == ArrayId::kData) progress.tokens += static_cast<int64_t>(chunk.size());
                       if (settings.progress) settings.progress(progress);
                     });
    if (!sums.ok()) array.status = sums.error();
    finished += array.bytes;
    progress.bytes_done = finished;
    if (id == ArrayId::kOffsets) progress.documents += ledger.split(split).rows;
    ++progress.files_done;
    if (settings.progress) settings.progress(progress);
  }
  return report;
}

Status verify_store(io::FileSystem& fs, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const StoreReport report, verify_arrays(fs, cache_dir, {}));
  for (const VerifiedArrayReport& array : report.arrays) RETURN_IF_ERROR(array.status);
  return {};
}

}  // namespace ostro::data
