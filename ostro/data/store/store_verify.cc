#include "ostro/data/store/store_verify.h"

#include <fmt/core.h>

#include <mutex>

#include "ostro/base/parallel.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

Result<std::vector<ChunkSum>> checked_sums(io::FileSystem& fs, ArraySource source, ArrayId id,
                                           const ArrayLedger& expected, const ChunkTable& table, bool sparse,
                                           int threads,
                                           const std::function<void(const ChunkElements&)>& read) {
  const std::string path = source.path;
  ASSIGN_OR_RETURN(const VerifiedArray array,
                   VerifiedArray::open(fs, std::move(source), expected, table,
                                       std::make_shared<ChunkCache>(size_t{0}), {.sparse = sparse}));
  std::vector<ChunkSum> sums(static_cast<size_t>(table.chunks()));
  std::mutex mutex;
  RETURN_IF_ERROR(parallel_for(table.chunks(), threads, [&](int64_t i) -> Status {
    ASSIGN_OR_RETURN(const VerifiedArray::Chunk chunk, array.chunk(i));
    sums[static_cast<size_t>(i)] = sum_chunk(chunk->type, chunk->bytes);
    if (!read) return {};
    const std::lock_guard lock(mutex);
    read(*chunk);
    return {};
  }));
  const ArrayLedger actual = array_ledger(id, expected.type, expected.elements, expected.chunk, sums);
  if (actual.sha256 != expected.sha256)
    return corrupt(fmt::format("damaged token store: {}: SHA-256 {}, the ledger says {}", path, actual.sha256,
                               expected.sha256));
  return sums;
}

Result<StoreReport> verify_arrays(io::FileSystem& fs, const std::string& cache_dir,
                                  const VerifySettings& settings) {
  ASSIGN_OR_RETURN(const StoreLedger ledger, read_ledger(fs, cache_dir));
  RETURN_IF_ERROR(check_parts(fs, cache_dir, ledger));
  StoreReport report{.ledger_hash = ledger.hash(), .arrays = {}};
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, ledger, report.ledger_hash));
  const bool foreign = !ledger.levanter_cache.empty();
  struct Task {
    Split split;
    ArrayPlace place;
  };
  std::vector<Task> tasks;
  BuildProgress progress;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places()) {
      const ArrayLedger& expected = ledger.split(split).array(place.id);
      if (expected.elements == 0 && foreign) continue;  // absent
      const int64_t bytes = expected.elements * static_cast<int64_t>(element_bytes(expected.type));
      tasks.push_back({split, place});
      report.arrays.push_back(
          {array_source(cache_dir, ledger, split, place).path, expected.elements, bytes, Status()});
      progress.bytes_total += bytes;
      ++progress.files_total;
    }
  int64_t finished = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto& [split, place] = tasks[i];
    const ArrayId id = place.id;
    VerifiedArrayReport& array = report.arrays[i];
    const auto sums =
        checked_sums(fs, array_source(cache_dir, ledger, split, place), id, ledger.split(split).array(id),
                     tables->table(split, id), foreign, settings.threads, [&](const ChunkElements& chunk) {
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

}  // namespace ostro::data
