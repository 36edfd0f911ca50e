// SafetensorsReader, write_safetensors: safetensors files, the common format for exchanging weights.
//
// A file is a JSON header (names, dtypes, shapes, byte ranges) followed by the bytes. Large models have
// several files and an index. Source: https://github.com/huggingface/safetensors
#pragma once

#include <functional>
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

// A tensor to write. `bytes` are row-major and little-endian, and owned by the caller. Of a tensor that is
// not in memory `write` is set instead: it appends the bytes, in any number of pieces.
struct SafetensorsEntry {
  using Append = std::function<Status(std::span<const std::byte>)>;

  std::string name, dtype;
  Extents shape;
  std::span<const std::byte> bytes;
  std::function<Status(const Append& append)> write = {};

  int64_t size() const;  // bytes, by dtype and shape
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// Writes one file atomically, with the tensors in the given order. The header is padded with spaces to a
// multiple of 8 bytes. ErrorCode::kInvalidArgument when an entry's bytes do not fit its shape, or two names
// are equal; the error of an entry's `write`.
Status write_safetensors(FileSystem& fs, const std::string& path, std::span<const SafetensorsEntry> entries,
                         const SafetensorsMetadata& metadata = {{"format", "pt"}});

// Writes `stem`.safetensors into the directory if everything fits into `max_file_bytes`. Otherwise writes
// `stem`-00001-of-0000N.safetensors and so on, filled in the given order, and last
// `stem`.safetensors.index.json. Files of the other form, left by an earlier export, are removed, so that no
// reader can mix the two.
Status write_safetensors_sharded(FileSystem& fs, const std::string& directory,
                                 std::span<const SafetensorsEntry> entries, int64_t max_file_bytes,
                                 const SafetensorsMetadata& metadata = {{"format", "pt"}},
                                 const std::string& stem = "model");

// The header entry of one tensor.
struct SafetensorsInfo {
  std::string name, dtype;
  Extents shape;
  int64_t begin = 0, end = 0;  // bytes in the file
  int64_t bytes() const { return end - begin; }
};

// Reads the tensors of one file, or of all files of an index. Thread-safe. `fs` must outlive it.
class SafetensorsReader {
 public:
  // Opens one file and checks every byte range: it lies inside the file, has the size that dtype and shape
  // require, and the ranges have no holes and no overlap.
  static Result<SafetensorsReader> open(FileSystem& fs, const std::string& path);
  // Opens `stem`.safetensors.index.json with its files, or `stem`.safetensors.
  static Result<SafetensorsReader> open_directory(FileSystem& fs, const std::string& directory,
                                                  const std::string& stem = "model");

  // In the order of the files.
  const std::vector<SafetensorsInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Null when there is no tensor of that name.
  const SafetensorsInfo* find(std::string_view name) const;

  // Fills `bytes`, which must have the tensor's size; ErrorCode::kNotFound for an unknown name.
  Status read(std::string_view name, std::span<std::byte> bytes) const;
  // Fills `bytes` with a range of the tensor's bytes, which begins at its byte `offset`.
  Status read_range(const SafetensorsInfo& info, int64_t offset, std::span<std::byte> bytes) const;
  // The path of the file that holds a tensor of tensors().
  const std::string& file_of(const SafetensorsInfo& info) const;

 private:
  Status add_file(FileSystem& fs, const std::string& path);

  std::vector<std::unique_ptr<RandomAccessFile>> files_;
  std::vector<SafetensorsInfo> tensors_;
  std::vector<size_t> file_of_;  // for each tensor, index into files_
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ostro::io
