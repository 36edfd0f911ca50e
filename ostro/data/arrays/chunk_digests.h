// ChunkDigests, StoreDigests: the SHA-256 of every chunk of a store, as the ledger confirms them.
//
// The CRC-32C of the chunk table finds damage, but a person who changes a store on purpose can compute it
// again. So the elements of a chunk are compared with its SHA-256 as well, the first time that a process
// decodes it. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/chunk_table.h"

namespace ostro::data {

// The digests of all arrays of a store, read from chunks.sha256 when the first is asked for. 32 bytes a chunk
// stay in memory.
class StoreDigests {
 public:
  // `ledger` may be without files; it must outlive this, and so must `fs`.
  StoreDigests(io::FileSystem& fs, std::string cache_dir, const StoreLedger& ledger,
               std::shared_ptr<const ChunkTables> tables);

  // The digests of an array's chunks. Null when the store has no file of digests (older stores), or one that
  // the ledger does not confirm; a warning says so once. Error: the chunk table is damaged.
  Result<const std::vector<Sha256Digest>*> of(Split split, ArrayId id) const;
  // Returns true when there are digests of all arrays. Errors as of().
  Result<bool> is_whole() const;

 private:
  using Digests = std::optional<std::vector<Sha256Digest>>;

  io::FileSystem* fs_;
  std::string cache_dir_;
  const StoreLedger* ledger_;
  std::shared_ptr<const ChunkTables> tables_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const PerArray<Digests>> digests_;  // null until they are asked for
};

// The digests of one array, with the chunks that were compared already.
class ChunkDigests {
 public:
  ChunkDigests(std::shared_ptr<const StoreDigests> store, Split split, ArrayId id, int64_t chunks);

  // Compares the elements of a chunk, as they are on disk, with its digest, the first time that it is called
  // for the chunk. Does nothing at later times, and when there are no digests. Error: kCorrupt when they
  // differ; the message does not name the chunk.
  Status check(int64_t chunk, ElementType type, std::span<const std::byte> bytes) const;

 private:
  std::shared_ptr<const StoreDigests> store_;
  Split split_;
  ArrayId id_;
  mutable std::mutex mutex_;
  mutable std::vector<bool> seen_;
};

}  // namespace ostro::data
