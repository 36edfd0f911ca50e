// Reads an array of a token store; a chunk is checked against the store's chunk table whenever it is decoded.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/check.h"
#include "ostro/base/lru_cache.h"
#include "ostro/data/chunk_table.h"
#include "ostro/data/element_type.h"
#include "ostro/io/zarr_1d.h"

namespace ostro::data {

// Elements of a decoded chunk.
struct ChunkElements {
  ElementType type = ElementType::kInt64;
  std::vector<std::byte> bytes;
  size_t size() const { return bytes.size() / element_bytes(type); }
  // Calls visit(span<const T>) with T being the type's.
  template <typename Visit>
  auto visit(const Visit& visit) const {
    return visit_elements(type, bytes, visit);
  }
  // Of an array of int64, such as offsets.
  std::span<const int64_t> int64s() const {
    OSTRO_CHECK(type == ElementType::kInt64, "elements of {} read as int64", element_name(type));
    return {reinterpret_cast<const int64_t*>(bytes.data()), bytes.size() / sizeof(int64_t)};
  }
};

// Decoded chunks of all arrays of a data set; costs are bytes.
using ChunkCache = LruCache<ChunkElements>;

// Thread-safe. Refers to the file system, which must outlive it.
class VerifiedArray {
 public:
  using Chunk = std::shared_ptr<const ChunkElements>;
  struct Settings {
    // Chunks that were never written are zeros, as in arrays of other programs, which leave such chunks out.
    bool sparse = false;
    // Above 0: the elements are ids below it, which is checked, and are kept as kept_ids() says.
    int64_t vocab_size = 0;
  };

  // The array in the folder `path`, which has that ledger and chunk table.
  static Result<VerifiedArray> open(io::FileSystem& fs, const std::string& path, const ArrayLedger& ledger,
                                    ChunkTable table, std::shared_ptr<ChunkCache> cache,
                                    const Settings& settings);

  int64_t elements() const { return elements_; }
  int64_t chunk_elements() const { return chunk_elements_; }
  const ChunkTable& table() const { return table_; }

  // The elements of a chunk: one read of the file when it is not cached. kCorrupt names the array and the
  // chunk when it is not what the ledger says.
  Result<Chunk> chunk(int64_t number) const;

  // Elements [first, first + out.size()), which must exist, converted to T.
  template <typename T>
  Status read(int64_t first, std::span<T> out) const {
    OSTRO_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= elements_,
                "{}: elements [{}, {}) of {}", path_, first, first + static_cast<int64_t>(out.size()),
                elements_);
    while (!out.empty()) {
      ASSIGN_OR_RETURN(const Chunk source, chunk(first / chunk_elements_));
      const auto begin = static_cast<size_t>(first % chunk_elements_);
      const size_t count = std::min(out.size(), source->size() - begin);
      source->visit([&](auto elements) {
        for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(elements[begin + i]);
      });
      first += static_cast<int64_t>(count);
      out = out.subspan(count);
    }
    return {};
  }

 private:
  // Memory to decode into, for the next chunks: fresh pages for each would cost as much as checking it.
  struct Spares {
    std::mutex mutex;
    std::vector<std::vector<std::byte>> list;
    std::vector<std::byte> take();
    void give(std::vector<std::byte> bytes);
  };

  VerifiedArray(std::string path, const ArrayLedger& ledger, ChunkTable table, io::Zarr1dReader reader,
                std::shared_ptr<ChunkCache> cache, const Settings& settings);
  // `bytes` as they are on disk, checked, and as they are kept.
  Result<ChunkElements> kept(int64_t number, std::vector<std::byte>& bytes) const;

  std::string path_;
  int64_t elements_, chunk_elements_;
  ElementType type_;
  ChunkTable table_;
  io::Zarr1dReader reader_;
  Settings settings_;
  ChunkCache::Part cache_;
  std::unique_ptr<Spares> spares_ = std::make_unique<Spares>();
};

}  // namespace ostro::data
