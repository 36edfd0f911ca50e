// Reads an array of a token store; a chunk is checked against the ledger whenever it is decoded.
#pragma once

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
  using Elements = std::vector<int64_t>;
  using Chunk = std::shared_ptr<const Elements>;

  // `cached_chunks`: how many decoded chunks to keep, at least 1.
  static Result<VerifiedArray> open(io::FileSystem& fs, const std::string& path, ArrayLedger ledger,
                                    size_t cached_chunks);

  int64_t elements() const { return ledger_.elements; }
  int64_t chunk_elements() const { return ledger_.chunk; }
  const ArrayLedger& ledger() const { return ledger_; }

  // The elements of a chunk: one read of the file when it is not cached. kCorrupt names the array and the
  // chunk when it is not what the ledger says.
  Result<Chunk> chunk(int64_t number) const;

  // Elements [first, first + out.size()), which must exist.
  Status read(int64_t first, std::span<int64_t> out) const;

 private:
  // Memory of chunks that nobody holds any more, for the next ones: fresh pages for every chunk of a batch
  // cost as much as checking its content.
  struct Spares {
    std::mutex mutex;
    std::vector<Elements> list;
  };
  struct Cache {
    std::mutex mutex;
    size_t capacity = 1;
    std::list<std::pair<int64_t, Chunk>> recent;  // latest first
    std::unordered_map<int64_t, std::list<std::pair<int64_t, Chunk>>::iterator> by_number;
  };

  // Room for a chunk, which comes back to the spares when nobody holds it any more.
  std::shared_ptr<Elements> take_room() const;

  VerifiedArray(std::string path, ArrayLedger ledger, io::Zarr1dReader reader, size_t cached_chunks);

  std::string path_;
  ArrayLedger ledger_;
  io::Zarr1dReader reader_;
  std::unique_ptr<Cache> cache_;
  std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();  // chunks may outlive the array
};

}  // namespace ostro::data
