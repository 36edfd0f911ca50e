// safetensors files: the interchange format of weights. A header of JSON (names, dtypes, shapes, places),
// then the bytes; large models are several files and an index. docs:
// https://github.com/huggingface/safetensors
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ostro/io/arrays/box.h"
#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Bytes of one element of "F64", "F32", "F16", "BF16", "I64".."I8", "U64".."U8", "BOOL"; 0 for any other
// name.
int64_t safetensors_item_size(std::string_view dtype);

// A tensor to write: row-major little-endian bytes, which it does not own.
struct SafetensorsEntry {
  std::string name, dtype;
  Extents shape;
  std::span<const std::byte> bytes;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// One file with the tensors in the given order, written atomically. The header is padded with spaces to 8
// bytes. Entries whose bytes do not fit their shape, or with equal names, are ErrorCode::kInvalidArgument.
Status write_safetensors(FileSystem& fs, const std::string& path, std::span<const SafetensorsEntry> entries,
                         const SafetensorsMetadata& metadata = {{"format", "pt"}});

// `stem`.safetensors in the directory when everything fits `max_file_bytes`, else
// `stem`-00001-of-0000N.safetensors and so on, filled in the given order, and last
// `stem`.safetensors.index.json. Files of the other form that an earlier export left are removed, so that a
// reader cannot mix the two.
Status write_safetensors_sharded(FileSystem& fs, const std::string& directory,
                                 std::span<const SafetensorsEntry> entries, int64_t max_file_bytes,
                                 const SafetensorsMetadata& metadata = {{"format", "pt"}},
                                 const std::string& stem = "model");

// What a header says of one tensor.
struct SafetensorsInfo {
  std::string name, dtype;
  Extents shape;
  int64_t begin = 0, end = 0;  // bytes in the file
  int64_t bytes() const { return end - begin; }
};

// The tensors of one file, or of all files of an index. Thread-safe; refers to `fs`, which must outlive it.
class SafetensorsReader {
 public:
  // One file. Every place is checked: inside the file, of the size that dtype and shape say, no holes and no
  // overlap.
  static Result<SafetensorsReader> open(FileSystem& fs, const std::string& path);
  // `stem`.safetensors.index.json and its files, or `stem`.safetensors.
  static Result<SafetensorsReader> open_directory(FileSystem& fs, const std::string& directory,
                                                  const std::string& stem = "model");

  // In the order of the files.
  const std::vector<SafetensorsInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is none of that name.
  const SafetensorsInfo* find(std::string_view name) const;

  // Fills `bytes`, which must have the tensor's size; ErrorCode::kNotFound for an unknown name.
  Status read(std::string_view name, std::span<std::byte> bytes) const;

 private:
  Status add_file(FileSystem& fs, const std::string& path);

  std::vector<std::unique_ptr<RandomAccessFile>> files_;
  std::vector<SafetensorsInfo> tensors_;
  std::vector<size_t> file_of_;  // of each tensor
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ostro::io
