#include "ostro/data/ledger/chunk_table.h"

#include <fmt/core.h>

#include <cstring>

#include "ostro/data/ledger/store_parts.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::data {
namespace {

constexpr const char* kTableFile = "chunks.table";

// A page holds entries, padded with zeros, and a CRC-32C. Both sizes of an entry divide the room for entries
// without remainder.
constexpr int64_t kPageBytes = 4096, kCrcBytes = 4, kEntryBytes = 4, kEntryBytesWithLast = 12;
static_assert((kPageBytes - kCrcBytes) % kEntryBytes == 0 &&
              (kPageBytes - kCrcBytes) % kEntryBytesWithLast == 0);

int64_t entries_of_page(bool has_last) {
  return (kPageBytes - kCrcBytes) / (has_last ? kEntryBytesWithLast : kEntryBytes);
}

int64_t pages_of(int64_t chunks, bool has_last) {
  const int64_t entries = entries_of_page(has_last);
  return chunks / entries + (chunks % entries != 0 ? 1 : 0);
}

// The checksum includes the store's hash and the page number, so that a page of another store or place is not
// accepted.
uint32_t crc_of_page(std::string_view entries, const std::string& store_hash, int64_t number) {
  uint32_t crc = io::crc32c(std::as_bytes(std::span(store_hash)));
  crc = io::crc32c(std::as_bytes(std::span(&number, 1)), crc);
  return io::crc32c(std::as_bytes(std::span(entries)), crc);
}

// Appends the pages of an array. `number` is the number of the first page.
void append_pages(const ArrayLedger& array, bool has_last, const std::string& store_hash, int64_t number,
                  std::string& out) {
  const auto chunks = static_cast<size_t>(array.chunks());
  OSTRO_CHECK(array.crc32c.size() == chunks && array.last.size() == (has_last ? chunks : 0),
              "{} checksums for {} chunks", array.crc32c.size(), chunks);
  const auto entries = static_cast<size_t>(entries_of_page(has_last));
  for (size_t begin = 0; begin < chunks; begin += entries, ++number) {
    const size_t page = out.size();
    for (size_t i = begin; i < std::min(begin + entries, chunks); ++i) {
      out.append(reinterpret_cast<const char*>(&array.crc32c[i]), kEntryBytes);
      if (has_last) out.append(reinterpret_cast<const char*>(&array.last[i]), sizeof(int64_t));
    }
    out.resize(page + kPageBytes - kCrcBytes);
    const uint32_t crc = crc_of_page(std::string_view(out).substr(page), store_hash, number);
    out.append(reinterpret_cast<const char*>(&crc), kCrcBytes);
  }
}

std::string encode(const StoreLedger& ledger, const std::string& hash) {
  std::string out;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places())
      append_pages(ledger.split(split).array(place.id), place.id == ArrayId::kOffsets, hash,
                   static_cast<int64_t>(out.size()) / kPageBytes, out);
  return out;
}

}  // namespace

Result<ChunkTable::Entry> ChunkTable::entry(int64_t chunk) const {
  OSTRO_CHECK(chunk >= 0 && chunk < chunks_, "{}: chunk {} of {}", tables_->path_, chunk, chunks_);
  const int64_t entries = entries_of_page(has_last_);
  ASSIGN_OR_RETURN(const auto page, tables_->page(first_page_ + chunk / entries));
  const char* at = page->data() + chunk % entries * (has_last_ ? kEntryBytesWithLast : kEntryBytes);
  Entry entry;
  std::memcpy(&entry.crc32c, at, kEntryBytes);
  if (has_last_) std::memcpy(&entry.last, at + kEntryBytes, sizeof(entry.last));
  return entry;
}

Result<uint32_t> ChunkTable::crc32c(int64_t chunk) const {
  ASSIGN_OR_RETURN(const Entry found, entry(chunk));
  return found.crc32c;
}

Result<int64_t> ChunkTable::last(int64_t chunk) const {
  OSTRO_CHECK(has_last_, "{}: last elements are kept of offsets only", tables_->path_);
  ASSIGN_OR_RETURN(const Entry found, entry(chunk));
  return found.last;
}

Result<int64_t> ChunkTable::first_above(int64_t value) const {
  int64_t begin = 0, end = chunks_;
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    ASSIGN_OR_RETURN(const int64_t ends, last(middle));
    if (ends > value)
      end = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

Result<std::shared_ptr<const ChunkTables>> ChunkTables::open(io::FileSystem& fs, const std::string& cache_dir,
                                                             const StoreLedger& ledger,
                                                             const std::string& hash) {
  const auto tables = std::shared_ptr<ChunkTables>(new ChunkTables());
  tables->path_ = chunk_tables_path(cache_dir);
  tables->store_hash_ = hash;
  tables->store_ = store_name(cache_dir, ledger);
  int64_t pages = 0;
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places()) {
      const int64_t chunks = ledger.split(split).array(place.id).chunks();
      tables->places_[static_cast<size_t>(split)][static_cast<size_t>(place.id)] = {chunks, pages};
      pages += pages_of(chunks, place.id == ArrayId::kOffsets);
      if (pages > INT64_MAX / kPageBytes / 8)
        return corrupt(fmt::format("{}: the ledger names {} chunks of {}", cache_dir, chunks, place.path));
    }
  auto file = fs.open(tables->path_);
  if (!file.ok() && file.error().code() == ErrorCode::kNotFound)
    return record_error(tables->store_, kTableFile, corrupt(fmt::format("{}: is gone", tables->path_)));
  if (!file.ok()) return record_error(tables->store_, kTableFile, file.error());
  if ((*file)->size() != pages * kPageBytes)
    return record_error(tables->store_, kTableFile,
                        corrupt(fmt::format("{}: {} bytes, where the ledger needs {}", tables->path_,
                                            (*file)->size(), pages * kPageBytes)));
  tables->file_ = std::move(*file);
  return std::shared_ptr<const ChunkTables>(tables);
}

ChunkTable ChunkTables::table(Split split, ArrayId id) const {
  const Place& place = places_[static_cast<size_t>(split)][static_cast<size_t>(id)];
  ChunkTable table;
  table.tables_ = shared_from_this();
  table.chunks_ = place.chunks;
  table.first_page_ = place.first_page;
  table.has_last_ = id == ArrayId::kOffsets;
  return table;
}

Result<std::shared_ptr<const ChunkTables::Page>> ChunkTables::page(int64_t number) const {
  if (auto found = pages_.find(number)) return found;
  Page page(kPageBytes, '\0');
  if (const Status read = file_->read(number * kPageBytes, std::as_writable_bytes(std::span(page)));
      !read.ok())
    return record_error(store_, kTableFile, read.error());
  uint32_t stored;
  std::memcpy(&stored, page.data() + kPageBytes - kCrcBytes, kCrcBytes);
  if (crc_of_page(std::string_view(page).substr(0, kPageBytes - kCrcBytes), store_hash_, number) != stored)
    return record_error(store_, kTableFile,
                        corrupt(fmt::format("{}: the checksum of page {} is wrong", path_, number)));
  return pages_.add(number, std::make_shared<const Page>(std::move(page)));
}

Status write_chunk_tables(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                          const std::string& hash) {
  return io::write_file_atomically(fs, chunk_tables_path(cache_dir), encode(ledger, hash));
}

std::string chunk_tables_path(const std::string& cache_dir) { return io::join_path(cache_dir, kTableFile); }

}  // namespace ostro::data
