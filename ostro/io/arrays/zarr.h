// ZarrArray: Zarr v3 arrays of any rank, read and written in boxes. (For the one-dimensional arrays of token
// stores see zarr_1d.h.)
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/arrays/zarr_shard.h"
#include "ostro/io/arrays/zarr_spec.h"
#include "ostro/io/files/file_system.h"

namespace ostro::io {

// The way in which chunk files reach the disk.
enum class ZarrWrite {
  // each file is written under a temporary name, synced and renamed, and the directory synced: old files may
  // be replaced
  kAtomic,
  // each file is written in place without a sync: the caller runs FileSystem::sync_tree before it commits
  kFresh,
};

// An array on disk. Keeps no copy of its elements. `fs` must outlive it. Thread-safe: boxes in different
// files may be written at the same time, and reading is possible at any time. Errors: kInvalidArgument for a
// box that does not fit the array; kCorrupt, with the file, for damaged chunks; those of the file system.
class ZarrArray {
 public:
  // Writes zarr.json into the directory `path` (made when absent).
  static Result<ZarrArray> create(FileSystem& fs, const std::string& path, ZarrSpec spec,
                                  ZarrWrite mode = ZarrWrite::kAtomic);
  static Result<ZarrArray> open(FileSystem& fs, const std::string& path);
  // An array that another process created with this spec, to write boxes to it. Touches no file.
  static Result<ZarrArray> created(FileSystem& fs, const std::string& path, ZarrSpec spec, ZarrWrite mode);

  const ZarrSpec& spec() const { return spec_; }
  const std::string& path() const { return path_; }

  // Writes dense row-major bytes to the box that begins at `start` and has extents `shape`. On every axis the
  // box must begin at a multiple of the file's chunk (ZarrSpec::file_chunk) and end at such a multiple or at
  // the array's end. As the standard requires, chunks at the array's end are stored in full size, padded with
  // zeros.
  Status write_box(const Extents& start, const Extents& shape, std::span<const std::byte> bytes) const;

  // The files whose bytes, one behind another, are the elements of the whole array, row-major; nothing where
  // no files are, because chunks are encoded, sharded, padded, or cut across rows.
  std::optional<std::vector<std::string>> row_major_files() const;

  // Reads any box into dense row-major bytes. As the standard says, chunks that were never written are zeros.
  Status read_box(const Extents& start, const Extents& shape, std::span<std::byte> bytes) const;

 private:
  struct Shard {
    std::unique_ptr<RandomAccessFile> file;
    ShardIndex index;
  };

  ZarrArray(FileSystem& fs, std::string path, ZarrSpec spec, ZarrWrite mode);

  std::string file_path(const Extents& index) const;
  Result<Bytes> encode_file(std::span<const std::byte> elements) const;
  Status read_chunk(const Extents& chunk_index, std::span<std::byte> elements, bool& missing) const;
  Result<std::shared_ptr<const Shard>> shard(const Extents& index) const;

  FileSystem* fs_;
  std::string path_;
  ZarrSpec spec_;
  ZarrWrite mode_;
  struct Cache {
    std::mutex mutex;
    std::map<Extents, std::shared_ptr<const Shard>> shards;  // null: no such file
  };
  std::unique_ptr<Cache> cache_ = std::make_unique<Cache>();
};

// Writes the zarr.json of a group (a directory of arrays and groups) atomically; attributes is a JSON object.
Status write_zarr_group(FileSystem& fs, const std::string& path, const std::string& attributes = "{}");

}  // namespace ostro::io
