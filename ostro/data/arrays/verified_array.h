// VerifiedArray: reads an array of a token store. Whenever a chunk is decoded, it is checked against the
// store's chunk table, and the first time against its SHA-256 (chunk_digests.h).
//
// Chunks are kept in a cache that all arrays of a data set share. kCorrupt names the array and the chunk that
// is not what the ledger says. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/base/lru_cache.h"
#include "ostro/base/spare_bytes.h"
#include "ostro/data/arrays/array_reader.h"
#include "ostro/data/arrays/chunk_digests.h"
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// The elements of a decoded chunk.
struct ChunkElements {
  // Leaves the elements uninitialised.
  ChunkElements(ElementType type, size_t size);
  ElementType type;
  AlignedBytes memory;
  std::span<std::byte> bytes;
  size_t size() const { return bytes.size() / element_bytes(type); }
  // Calls visit(span<const T>), where T is the C++ type of the elements.
  template <typename Visit>
  auto visit(const Visit& visit) const {
    return visit_elements(type, bytes, visit);
  }
  // Only for arrays of int64, such as offsets.
  std::span<const int64_t> int64s() const {
    OSTRO_CHECK(type == ElementType::kInt64, "elements of {} read as int64", element_name(type));
    return {reinterpret_cast<const int64_t*>(bytes.data()), bytes.size() / sizeof(int64_t)};
  }
};

// A cache of decoded chunks, shared by all arrays of a data set. The cost of an entry is its bytes.
using ChunkCache = LruCache<ChunkElements>;

// For arrays much larger than the cache: whether a chunk enters the cache the first time it is read, or only
// the second time.
enum class KeepChunks { kAtOnce, kSecondTime };

// Thread-safe. The file system must outlive it.
class VerifiedArray {
 public:
  using Chunk = std::shared_ptr<const ChunkElements>;
  struct Settings {
    // Chunks that were never written are read as zeros. Other programs leave out chunks of zeros.
    bool sparse = false;
    // Above 0: the elements are ids; they are checked to be below it, and kept in memory as kept_ids().
    int64_t vocab_size = 0;
    KeepChunks keep = KeepChunks::kSecondTime;
    std::shared_ptr<const ChunkDigests> digests = nullptr;  // null: only the chunk table is asked
  };

  // Opens the array at `source`; `ledger` and `table` are its entry and its chunk table.
  static Result<VerifiedArray> open(io::FileSystem& fs, ArraySource source, const ArrayLedger& ledger,
                                    ChunkTable table, std::shared_ptr<ChunkCache> cache,
                                    const Settings& settings);

  VerifiedArray(VerifiedArray&&) noexcept;
  ~VerifiedArray();

  int64_t elements() const { return elements_; }
  int64_t chunk_elements() const { return chunk_elements_; }
  const ChunkTable& table() const { return table_; }

  // The elements of a chunk. When it is not cached, this reads the file once (more often where parts of a
  // store meet). If another thread is decoding the same chunk, this one waits for it. kCorrupt names the
  // array and the chunk when it is not what the ledger says; errors are those of array_error
  // (store_damage.h).
  Result<Chunk> chunk(int64_t number) const;

  // Elements [first, first + out.size()), which must exist, converted to T.
  template <typename T>
  Status read(int64_t first, std::span<T> out) const {
    OSTRO_CHECK(first >= 0 && first + static_cast<int64_t>(out.size()) <= elements_,
                "{}: elements [{}, {}) of {}", reader_.source().path, first,
                first + static_cast<int64_t>(out.size()), elements_);
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
  // State shared by the threads that decode.
  struct Decoding {
    SpareBytes spares;  // buffers for ids on disk, before they are converted to their width in memory
    std::mutex mutex;
    std::condition_variable done;
    std::set<int64_t> numbers;  // chunks that are being decoded
  };
  class Turn;
  class Newcomers;

  VerifiedArray(const ArrayLedger& ledger, ChunkTable table, ArrayReader reader,
                std::shared_ptr<ChunkCache> cache, const Settings& settings);
  ElementType kept_type() const;
  Chunk find(int64_t number) const;
  Result<Chunk> decode(int64_t number) const;
  // The elements of a chunk as they are on disk.
  Status read_checked(int64_t number, std::span<std::byte> out) const;
  std::string describe(int64_t number) const;
  // The error for ids that keep_ids refused.
  Error bad_id(int64_t number, std::span<const std::byte> ids) const;

  int64_t elements_, chunk_elements_;
  ElementType type_;
  ChunkTable table_;
  ArrayReader reader_;
  Settings settings_;
  ChunkCache::Part cache_;
  std::unique_ptr<Newcomers> newcomers_;  // null: chunks enter the cache at once
  std::unique_ptr<Decoding> decoding_ = std::make_unique<Decoding>();
};

}  // namespace ostro::data
