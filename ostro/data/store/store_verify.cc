#include "ostro/data/store/store_verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>

#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {
namespace {

// The tree of rows that is kept, and the ledger's root, against the rows.
Status check_row_tree(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                      const ChunkTables& tables, int threads) {
  const auto damaged = [&](const std::string& what) {
    return record_error(store_name(cache_dir, ledger), "rows.tree", corrupt(what));
  };
  ASSIGN_OR_RETURN(const RowTree tree, read_row_tree(fs, cache_dir, ledger, tables, threads));
  if (store_root(tree) != ledger.root)
    return damaged(fmt::format("{}: the rows have the root {}, the ledger says {}", cache_dir,
                               store_root(tree), ledger.root));
  const Result<RowTree> kept = kept_row_tree(fs, cache_dir);
  if (!kept.ok() && kept.error().code() != ErrorCode::kNotFound) return damaged(kept.error().message());
  if (!kept.ok()) return damaged(fmt::format("{}: is gone", row_tree_path(cache_dir)));
  if (*kept != tree)
    return damaged(fmt::format("{}: is not the tree of this store's rows", row_tree_path(cache_dir)));
  return {};
}

}  // namespace

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

Result<std::string> root_of_rows(io::FileSystem& fs, const std::string& cache_dir, const TokenStore& store) {
  log_warning(
      fmt::format("{}: is a token store of an older format, without a tree of rows; reading all rows to "
                  "make the tree. A store that is built again has one",
                  cache_dir));
  ASSIGN_OR_RETURN(const auto tables, ChunkTables::open(fs, cache_dir, store.ledger(), store.hash()));
  ASSIGN_OR_RETURN(const RowTree tree,
                   read_row_tree(fs, cache_dir, store.ledger(), *tables, BuildSettings().threads_or_all()));
  return store_root(tree);
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
  const bool has_tree = !ledger.root.empty();
  if (has_tree) ++progress.files_total;
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
  const bool whole = std::all_of(report.arrays.begin(), report.arrays.end(),
                                 [](const VerifiedArrayReport& array) { return array.status.ok(); });
  if (!has_tree || !whole) return report;  // damaged rows have another tree
  VerifiedArrayReport tree{row_tree_path(cache_dir), ledger.splits[0].rows + ledger.splits[1].rows, 0,
                           Status()};
  tree.status = check_row_tree(fs, cache_dir, ledger, *tables, settings.threads);
  report.arrays.push_back(std::move(tree));
  ++progress.files_done;
  if (settings.progress) settings.progress(progress);
  return report;
}

}  // namespace ostro::data
