// ChunkTable, ChunkTables: the checksum and the last element of every chunk of a store's arrays.
//
// The table is read page by page, because a store of 10^13 tokens has tens of millions of chunks
// (docs/reference/formats/token_store.md, "chunks.table"). kCorrupt names the file when it is damaged.
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "ostro/base/lru_cache.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

class ChunkTables;

// The chunks of one array. Immutable, thread-safe.
class ChunkTable {
 public:
  int64_t chunks() const { return chunks_; }
  // CRC-32C of a chunk's elements. This and the functions below fail with kCorrupt, naming the file, when the
  // table is damaged.
  Result<uint32_t> crc32c(int64_t chunk) const;
  // The last element of a chunk. Only for offsets.
  Result<int64_t> last(int64_t chunk) const;
  // The first chunk whose last element is above `value`; chunks() when there is none. Only for offsets.
  Result<int64_t> first_above(int64_t value) const;

 private:
  friend class ChunkTables;
  struct Entry {
    uint32_t crc32c = 0;
    int64_t last = 0;
  };
  Result<Entry> entry(int64_t chunk) const;

  std::shared_ptr<const ChunkTables> tables_;
  int64_t chunks_ = 0, first_page_ = 0;
  bool has_last_ = false;
};

// The chunk tables of all arrays of a store. Caches the pages used last, up to 4 MiB.
class ChunkTables : public std::enable_shared_from_this<ChunkTables> {
 public:
  // Opens the tables in `cache_dir`. `ledger` (with or without files) and its `hash` were read from there.
  // kCorrupt when the file is missing or does not have the size that the ledger requires. Pages are checked
  // when they are read.
  static Result<std::shared_ptr<const ChunkTables>> open(io::FileSystem& fs, const std::string& cache_dir,
                                                         const StoreLedger& ledger, const std::string& hash);

  ChunkTable table(Split split, ArrayId id) const;

 private:
  friend class ChunkTable;
  using Page = std::string;
  ChunkTables() = default;
  Result<std::shared_ptr<const Page>> page(int64_t number) const;

  struct Place {
    int64_t chunks = 0, first_page = 0;
  };
  std::array<std::array<Place, kArrayCount>, 2> places_;  // by Split and ArrayId
  std::string path_, store_hash_;
  StoreName store_;
  std::unique_ptr<io::RandomAccessFile> file_;
  LruCache<Page>::Part pages_{std::make_shared<LruCache<Page>>(1024)};
};

// Writes the tables of a ledger that holds the sums of all chunks. Durable when it returns. `hash` is the
// ledger's.
Status write_chunk_tables(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger,
                          const std::string& hash);

std::string chunk_tables_path(const std::string& cache_dir);

}  // namespace ostro::data
