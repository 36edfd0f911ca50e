// Zarr1dWriter, Zarr1dReader: long one-dimensional arrays, such as `data` and `offsets` of a token store.
// They are Zarr v3 with sharding, appended chunk by chunk, with random reads (layout:
// docs/reference/formats/token_store.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ostro/io/arrays/zarr_shard.h"
#include "ostro/io/arrays/zarr_spec.h"
#include "ostro/io/files/file_system.h"

namespace ostro::io {

// The layout that Levanter's reader accepts: blosc (lz4, level 5, byte shuffle by item size), chunks of
// 262,144 elements in shards of 134,217,728. `length` is the array's shape and the most that can be appended;
// Levanter uses 2^54.
ZarrSpec token_store_spec(std::string dtype, int64_t length = int64_t{1} << 54);

// Appends elements. Memory is bounded by a few chunks. Every element is compressed and written once, except
// in a chunk that was not full at a commit. Not thread-safe. `fs` must outlive it.
class Zarr1dWriter {
 public:
  // The part of the array that a commit made durable. The owner of the array records it, for example in a
  // ledger written after the commit, and passes it to resume(). Anything that was written later is cut off
  // then.
  struct Position {
    int64_t elements = 0;
    int64_t shard_bytes = 0;  // size of the file of the last, unfinished shard; 0 if there is none
    bool operator==(const Position&) const = default;
  };

  // Makes a new, empty array in the directory `path`. Old chunks there are removed. The spec must have one
  // axis and be sharded, with the index at the end.
  static Result<Zarr1dWriter> create(FileSystem& fs, const std::string& path, ZarrSpec spec);
  // Continues at `position`. ErrorCode::kCorrupt when files are shorter than it says, or damaged.
  static Result<Zarr1dWriter> resume(FileSystem& fs, const std::string& path, const Position& position);

  const ZarrSpec& spec() const { return spec_; }
  // Elements appended so far, committed or not.
  int64_t elements() const { return elements_; }

  // Appends whole elements, as little-endian bytes.
  Status append(std::span<const std::byte> bytes);
  template <typename T>
  Status append(std::span<const T> values) {
    OSTRO_CHECK(sizeof(T) == static_cast<size_t>(spec_.item_size()), "{}: {}-byte values for {}", path_,
                sizeof(T), spec_.dtype);
    return append(std::as_bytes(values));
  }

  // Makes everything appended so far durable and readable, and returns where it ends. This costs a sync, and
  // writes the index and the last, partly filled chunk again.
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
  Bytes pending_;                       // elements of the unfinished chunk
  std::unique_ptr<WritableFile> file_;  // file of the unfinished shard; null between shards
  int64_t file_bytes_ = 0;
  ShardIndex index_;
  bool names_changed_ = false;  // a file was created since the directory was last synced
};

// Replaces one element of an array on disk. Rewrites the file of its shard and replaces it atomically.
Status replace_element(FileSystem& fs, const std::string& path, int64_t position,
                       std::span<const std::byte> element);

// A cache of compressed chunks for all readers that share it: the `count` (at least 1) chunks used last.
struct CompressedChunks;
std::shared_ptr<CompressedChunks> make_compressed_chunks(int64_t count);

// Reads ranges. Caches the compressed bytes of the chunks used last. The files and indexes of the shards used
// last stay open, at most 256 for all readers of the process together. Thread-safe. `fs` must outlive it.
class Zarr1dReader {
 public:
  // The array need not be sharded.
  static Result<Zarr1dReader> open(FileSystem& fs, const std::string& path,
                                   std::shared_ptr<CompressedChunks> chunks);
  // With a cache of its own, of `cached_chunks` compressed chunks.
  static Result<Zarr1dReader> open(FileSystem& fs, const std::string& path, int64_t cached_chunks = 16);
  Zarr1dReader(Zarr1dReader&&) noexcept;
  Zarr1dReader& operator=(Zarr1dReader&&) noexcept;
  ~Zarr1dReader();

  const ZarrSpec& spec() const;

  // Reads elements [start, start + bytes.size() / item size) as little-endian bytes. Reads only the chunks
  // that hold them: one read for each chunk, and one for the index of a shard that is new to the cache. Of
  // blosc chunks only the needed blocks are decoded. Elements in chunks that were never written are an error
  // with `must_exist`, else 0.
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
