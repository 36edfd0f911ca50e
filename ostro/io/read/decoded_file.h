// The content of a file as a stream, unpacked when it is compressed (gzip, zstd).
#pragma once

#include <memory>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Reads one file from front to back in blocks of 128 KiB. Compression is told by the file's first bytes, not
// its name; several gzip members or zstd frames in a row are one stream. Not thread-safe.
class DecodedFile {
 public:
  // Starts `skip` bytes into the file, which must not be compressed then (ErrorCode::kInvalidArgument).
  // kCorrupt when the name promises a compressed file and the bytes do not begin like one.
  static Result<std::unique_ptr<DecodedFile>> open(FileSystem& fs, const std::string& path, int64_t skip = 0);
  virtual ~DecodedFile() = default;

  // Appends some more content; false at the end of a complete stream. A truncated or damaged stream is
  // ErrorCode::kCorrupt; the message does not name the file.
  virtual Result<bool> append_to(std::string& text) = 0;

  // So many bytes of the file as it is stored hold the content given: exact if plain, else within a block.
  virtual int64_t stored_bytes() const = 0;

  // SHA-256 of the file as it is stored, in hexadecimal, of the very bytes that were decoded. Only after
  // append_to() gave false; "" when reading did not start at the beginning.
  virtual std::string file_sha256() = 0;
};

}  // namespace ostro::io
