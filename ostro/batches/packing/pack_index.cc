#include "ostro/batches/packing/pack_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ostro/base/check.h"
#include "ostro/batches/packing/pack_index_file.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/only_local.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::batches {

// Opens a file whose header fits the store and the rule; otherwise makes it once under the folder's lock and
// tries again. A second failure means that the file system does not give back what was written.
Result<std::shared_ptr<const PackIndex>> PackIndex::open(io::FileSystem& fs, const std::string& folder,
                                                         const data::TokenStream& stream,
                                                         const std::string& store_hash,
                                                         const PackRule& rule) {
  OSTRO_CHECK(rule.seq_len >= 1, "sequences of {} tokens", rule.seq_len);
  const std::string path = io::join_path(folder, pack_index_name(rule));
  for (bool made = false;; made = true) {
    ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
    if (exists) {
      std::shared_ptr<PackIndex> index(new PackIndex());
      ASSIGN_OR_RETURN(index->file_, fs.open(path));
      ASSIGN_OR_RETURN(const std::optional<PackHeader> header, read_pack_header(*index->file_));
      if (header && header->is_of(stream, store_hash, rule)) {
        index->rule_ = rule;
        index->counts_ = header->counts;
        return std::shared_ptr<const PackIndex>(std::move(index));
      }
    }
    if (made) return corrupt(fmt::format("{}: cannot be read back as it was written", path));
    RETURN_IF_ERROR(io::only_local(fs, folder, "token stores"));
    RETURN_IF_ERROR(fs.make_dirs(folder));
    ASSIGN_OR_RETURN(const auto lock, fs.lock(io::join_path(folder, "build.lock"), "packing"));
    RETURN_IF_ERROR(io::write_file_atomically(
        fs, path, [&](io::WritableFile& file) { return write_pack_index(file, stream, store_hash, rule); }));
  }
}

Result<int64_t> PackIndex::entry(int64_t number) const {
  const int64_t page = number / kPackPageEntries, at = number % kPackPageEntries;
  auto& slot = cache_->pages[static_cast<size_t>(page) % cache_->pages.size()];
  {
    const std::lock_guard lock(cache_->mutex);
    if (slot.second != nullptr && slot.first == page) return (*slot.second)[static_cast<size_t>(at)];
  }
  const int64_t entries = std::min(kPackPageEntries, counts_.sequences + 1 - page * kPackPageEntries);
  Page values(static_cast<size_t>(entries));
  uint32_t crc = 0;
  const int64_t offset = page * pack_page_bytes(kPackPageEntries);
  RETURN_IF_ERROR(file_->read(offset, std::as_writable_bytes(std::span(values))));
  RETURN_IF_ERROR(file_->read(offset + entries * 8, std::as_writable_bytes(std::span(&crc, 1))));
  if (io::crc32c(std::as_bytes(std::span(values))) != crc)
    return corrupt(
        fmt::format("{}: page {} is damaged; delete the file to make it again", file_->path(), page));
  auto held = std::make_shared<const Page>(std::move(values));
  const int64_t value = (*held)[static_cast<size_t>(at)];
  const std::lock_guard lock(cache_->mutex);
  slot = {page, std::move(held)};
  return value;
}

Result<std::pair<int64_t, int64_t>> PackIndex::rows(int64_t sequence) const {
  OSTRO_CHECK(sequence >= 0 && sequence < counts_.sequences, "{}: sequence {} of {}", file_->path(), sequence,
              counts_.sequences);
  ASSIGN_OR_RETURN(const int64_t first, entry(sequence));
  ASSIGN_OR_RETURN(const int64_t end, entry(sequence + 1));
  return std::pair(first, end);
}

Result<std::optional<int64_t>> PackIndex::sequence_of(int64_t row) const {
  int64_t low = 0,
          high = counts_.sequences;  // the first sequence that begins behind the row is in [low, high]
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    ASSIGN_OR_RETURN(const int64_t first, entry(middle));
    if (first <= row)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? std::optional<int64_t>() : std::optional(low - 1);
}

}  // namespace ostro::batches
