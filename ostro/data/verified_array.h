// Reads an array of a token store; a chunk is checked against the ledger whenever it is decoded.
#pragma once

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ostro/data/ledger.h"
#include "ostro/io/zarr_1d.h"

namespace ostro::data {

// Thread-safe. Keeps the decoded chunks used last. Refers to the file system, which must outlive it.
class VerifiedArray {
 public:
  // Elements as they are on disk.
  struct Elements {
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
  using Chunk = std::shared_ptr<const Elements>;

  // `cached_chunks`: how many decoded chunks to keep, at least 1. `sparse`: chunks that were never written
  // are zeros, as in arrays of other programs, which leave such chunks out.
  static Result<VerifiedArray> open(io::FileSystem& fs, const std::string& path, ArrayLedger ledger,
                                    size_t cached_chunks, bool sparse = false);

  int64_t elements() const { return ledger_.elements; }
  int64_t chunk_elements() const { return ledger_.chunk; }
  const ArrayLedger& ledger() const { return ledger_; }

  // The elements of a chunk: one read of the file when it is not cached. kCorrupt names the array and the
  // chunk when it is not what the ledger says.
  Result<Chunk> chunk(int64_t number) const;

  // Elements [first, first + out.size()), which must exist, converted to T.
  template <typename T>
  Status read(int64_t first, std::span<T> out) const {
    return read_pieces(first, static_cast<int64_t>(out.size()), [&out](auto elements) {
      for (size_t i = 0; i < elements.size(); ++i) out[i] = static_cast<T>(elements[i]);
      out = out.subspan(elements.size());
    });
  }

 private:
  // Memory of chunks that nobody holds any more, for the next ones: fresh pages for every chunk of a batch
  // cost as much as checking its content.
  struct Spares {
    std::mutex mutex;
    std::vector<std::vector<std::byte>> list;
  };
  struct Cache {
    std::mutex mutex;
    size_t capacity = 1;
    std::list<std::pair<int64_t, Chunk>> recent;  // latest first
    std::unordered_map<int64_t, std::list<std::pair<int64_t, Chunk>>::iterator> by_number;
  };

  // Calls visit with the elements of every chunk that overlaps [first, first + count), in order.
  template <typename Visit>
  Status read_pieces(int64_t first, int64_t count, const Visit& visit) const {
    OSTRO_CHECK(first >= 0 && first + count <= ledger_.elements, "{}: elements [{}, {}) of {}", path_, first,
                first + count, ledger_.elements);
    while (count > 0) {
      const int64_t begin = first % ledger_.chunk;
      ASSIGN_OR_RETURN(const Chunk source, chunk(first / ledger_.chunk));
      const int64_t taken = std::min(count, static_cast<int64_t>(source->size()) - begin);
      source->visit([&](auto elements) {
        visit(elements.subspan(static_cast<size_t>(begin), static_cast<size_t>(taken)));
      });
      first += taken;
      count -= taken;
    }
    return {};
  }

  // Room for a chunk, which comes back to the spares when nobody holds it any more.
  std::shared_ptr<Elements> take_room() const;

  VerifiedArray(std::string path, ArrayLedger ledger, io::Zarr1dReader reader, size_t cached_chunks);

  std::string path_;
  ArrayLedger ledger_;
  io::Zarr1dReader reader_;
  bool sparse_ = false;
  std::unique_ptr<Cache> cache_;
  std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();  // chunks may outlive the array
};

}  // namespace ostro::data
