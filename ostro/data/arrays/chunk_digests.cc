#include "ostro/data/arrays/chunk_digests.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/data/arrays/recorded_sums.h"

namespace ostro::data {

StoreDigests::StoreDigests(io::FileSystem& fs, std::string cache_dir, const StoreLedger& ledger,
                           std::shared_ptr<const ChunkTables> tables)
    : fs_(&fs), cache_dir_(std::move(cache_dir)), ledger_(&ledger), tables_(std::move(tables)) {}

Result<const std::vector<Sha256Digest>*> StoreDigests::of(Split split, ArrayId id) const {
  const std::lock_guard lock(mutex_);
  if (digests_ == nullptr) {
    ASSIGN_OR_RETURN(const auto sums, recorded_sums(*fs_, cache_dir_, *ledger_, *tables_));
    auto digests = std::make_unique<PerArray<Digests>>();
    bool whole = true;
    for (size_t s = 0; s < sums.size(); ++s)
      for (const ArrayPlace& place : ledger_->places()) {
        const auto a = static_cast<size_t>(place.id);
        if (!sums[s][a]) {
          whole = false;
          continue;
        }
        std::vector<Sha256Digest>& list = (*digests)[s][a].emplace();
        for (const ChunkSum& sum : *sums[s][a]) list.push_back(sum.sha256);
      }
    if (!whole && ledger_->levanter_cache.empty())  // checks of a Levanter cache keep no digests
      log_warning(
          fmt::format("{} is missing, or is not what the ledger says: chunks are compared with their "
                      "CRC-32C only; ostro data verify compares the whole store",
                      digests_path(cache_dir_)));
    digests_ = std::move(digests);
  }
  const Digests& own = (*digests_)[static_cast<size_t>(split)][static_cast<size_t>(id)];
  return own ? &*own : nullptr;
}

Result<bool> StoreDigests::is_whole() const {
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger_->places()) {
      ASSIGN_OR_RETURN(const std::vector<Sha256Digest>* digests, of(split, place.id));
      if (digests == nullptr) return false;
    }
  return true;
}

ChunkDigests::ChunkDigests(std::shared_ptr<const StoreDigests> store, Split split, ArrayId id, int64_t chunks)
    : store_(std::move(store)), split_(split), id_(id), seen_(static_cast<size_t>(chunks)) {}

Status ChunkDigests::check(int64_t chunk, ElementType type, std::span<const std::byte> bytes) const {
  const auto at = static_cast<size_t>(chunk);
  {
    const std::lock_guard lock(mutex_);
    if (at < seen_.size() && seen_[at]) return {};
  }
  ASSIGN_OR_RETURN(const std::vector<Sha256Digest>* digests, store_->of(split_, id_));
  if (digests == nullptr) return {};
  if (at >= digests->size()) return corrupt(fmt::format("has no SHA-256 in a list of {}", digests->size()));
  const Sha256Digest found = sum_chunk(type, bytes).sha256;
  if (found != (*digests)[at])
    return corrupt(fmt::format("has SHA-256 {}, the ledger says {}", to_hex(found), to_hex((*digests)[at])));
  const std::lock_guard lock(mutex_);
  seen_[at] = true;
  return {};
}

}  // namespace ostro::data
