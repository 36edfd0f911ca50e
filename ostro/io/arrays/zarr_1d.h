// Long one-dimensional arrays: the token store's `data` and `offsets`. Zarr v3 with sharding, appended to
// chunk by chunk and read at random (docs/formats/token_store.md has the layout).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ostro/io/arrays/zarr_shard.h"
#include "ostro/io/arrays/zarr_spec.h"
#include "ostro/io/files/file_system.h"

namespace ostro::io {

// What Levanter's reader accepts: blosc (lz4, level 5, byte shuffle by item size), chunks of 262,144 elements
// in shards of 134,217,728. `length` is the array's shape; appending grows it up to that, and Levanter's own
// is 2^54.
ZarrSpec token_store_spec(std::string dtype, int64_t length = int64_t{1} << 54);

// Appends elements. Memory stays within a few chunks; every element is compressed and written once, but for
// the chunk that a commit ends in. Not thread-safe. Refers to `fs`, which must outlive it.
class Zarr1dWriter {
 public:
  // How much of the array a commit made durable. Whoever owns the array records it (a ledger, written after
  // the commit) and gives it back to resume(): what was written later is cut off.
  struct Position {
    int64_t elements = 0;
    int64_t shard_bytes = 0;  // of the file of the last, unfinished shard; 0 when there is none
    bool operator==(const Position&) const = default;
  };

  // A new array in the directory `path`: metadata, no elements. Old chunks there are removed. The spec must
  // have one axis, be sharded, with the index at the end.
  static Result<Zarr1dWriter> create(FileSystem& fs, const std::string& path, ZarrSpec spec);
  // Goes on from `position`; files that are shorter than it says, or damaged, are ErrorCode::kCorrupt.
  static Result<Zarr1dWriter> resume(FileSystem& fs, const std::string& path, const Position& position);

  const ZarrSpec& spec() const { return spec_; }
  // Elements appended, committed or not.
  int64_t elements() const { return elements_; }

  // Appends whole elements in little-endian bytes.
  Status append(std::span<const std::byte> bytes);
  template <typename T>
  Status append(std::span<const T> values) {
    OSTRO_CHECK(sizeof(T) == static_cast<size_t>(spec_.item_size()), "{}: {}-byte values for {}", path_,
                sizeof(T), spec_.dtype);
    return append(std::as_bytes(values));
  }

  // Makes everything appended so far durable and readable, and says where that ends. Costs a sync, the index
  // and the last, partly filled chunk again.
  Result<Position> commit();

 private:
  Zarr1dWriter(FileSystem& fs, std::string path, ZarrSpec spec);

  Status restore_shard(const Position& position);
  Status remove_shards_from(int64_t first);
  Status write_pending_chunk(int64_t chunk_in_shard);
  Status write_index();
  Status put(std::span<const std::byte> bytes);
  std::string shard_path(int64_t shard) const;

  FileSystem* fs_;
  std::string path_;
  ZarrSpec spec_;
  int64_t elements_ = 0;
  Bytes pending_;                       // elements of the chunk being filled
  std::unique_ptr<WritableFile> file_;  // of the shard being filled; null between shards
  int64_t file_bytes_ = 0;
  ShardIndex index_;
  bool names_changed_ = false;  // since the directory was last synced
};

// Replaces one element of an array on disk; the file of its shard is rewritten and swapped atomically.
Status replace_element(FileSystem& fs, const std::string& path, int64_t position,
                       std::span<const std::byte> element);

// The compressed chunks used last, `count` (at least 1) of all readers that share them.
struct CompressedChunks;
std::shared_ptr<CompressedChunks> make_compressed_chunks(int64_t count);

// Reads ranges. Keeps the compressed bytes of the chunks used last, and open the files and indexes of the
// shards used last, 256 of all readers of the process together. Thread-safe. Refers to `fs`, which must
// outlive it.
class Zarr1dReader {
 public:
  // Unsharded arrays are read, too.
  static Result<Zarr1dReader> open(FileSystem& fs, const std::string& path,
                                   std::shared_ptr<CompressedChunks> chunks);
  // With `cached_chunks` compressed chunks of its own.
  static Result<Zarr1dReader> open(FileSystem& fs, const std::string& path, int64_t cached_chunks = 16);
  Zarr1dReader(Zarr1dReader&&) noexcept;
  Zarr1dReader& operator=(Zarr1dReader&&) noexcept;
  ~Zarr1dReader();

  const ZarrSpec& spec() const;

  // Elements [start, start + bytes.size() / item size) in little-endian bytes. Reads only the chunks that
  // hold them (one pread each, and one for the index of a shard seen first), decoding blosc only where
  // needed. Elements in chunks that were never written are an error when `must_exist`, else 0.
  Status read(int64_t start, std::span<std::byte> bytes, bool must_exist = true) const;
  template <typename T>
  Status read(int64_t start, std::span<T> values, bool must_exist = true) const {
    OSTRO_CHECK(sizeof(T) == static_cast<size_t>(spec().item_size()), "{}-byte values for {}", sizeof(T),
                spec().dtype);
    return read(start, std::as_writable_bytes(values), must_exist);
  }

 private:
  struct State;
  explicit Zarr1dReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::io
