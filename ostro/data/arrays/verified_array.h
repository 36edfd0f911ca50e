// Reads an array of a token store; a chunk is checked against the store's chunk table whenever it is decoded.
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
#include "ostro/data/ledger/chunk_table.h"
#include "ostro/data/ledger/element_type.h"

namespace ostro::data {

// Elements of a decoded chunk.
struct ChunkElements {
  // Not initialised.
  ChunkElements(ElementType type, size_t size);
  ElementType type;
  AlignedBytes memory;
  std::span<std::byte> bytes;
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

// When a chunk of an array that is much larger than the cache is kept there: the first or the second time
// that it is wanted.
enum class KeepChunks { kAtOnce, kSecondTime };

// Thread-safe. Refers to the file system, which must outlive it.
class VerifiedArray {
 public:
  using Chunk = std::shared_ptr<const ChunkElements>;
  struct Settings {
    // Chunks that were never written are zeros, as in arrays of other programs, which leave such chunks out.
    bool sparse = false;
    // Above 0: the elements are ids below it, which is checked, and are kept as kept_ids() says.
    int64_t vocab_size = 0;
    KeepChunks keep = KeepChunks::kSecondTime;
  };

  // The array there, which has that ledger and chunk table.
  static Result<VerifiedArray> open(io::FileSystem& fs, ArraySource source, const ArrayLedger& ledger,
                                    ChunkTable table, std::shared_ptr<ChunkCache> cache,
                                    const Settings& settings);

  VerifiedArray(VerifiedArray&&) noexcept;
  ~VerifiedArray();

  int64_t elements() const { return elements_; }
  int64_t chunk_elements() const { return chunk_elements_; }
  const ChunkTable& table() const { return table_; }

  // The elements of a chunk: one read of the file when it is not cached, or several where parts meet; a
  // thread that wants what another one is decoding waits for it. kCorrupt names the array and the chunk when
  // it is not what the ledger says; errors are those of array_error (store_damage.h).
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
  // What threads that decode share.
  struct Decoding {
    SpareBytes spares;  // to decode into what is then kept in another width
    std::mutex mutex;
    std::condition_variable done;
    std::set<int64_t> numbers;  // of chunks
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
  // Why keep_ids refused them.
  Error bad_id(int64_t number, std::span<const std::byte> ids) const;

  int64_t elements_, chunk_elements_;
  ElementType type_;
  ChunkTable table_;
  ArrayReader reader_;
  Settings settings_;
  ChunkCache::Part cache_;
  std::unique_ptr<Newcomers> newcomers_;  // null: chunks are kept at once
  std::unique_ptr<Decoding> decoding_ = std::make_unique<Decoding>();
};

}  // namespace ostro::data
