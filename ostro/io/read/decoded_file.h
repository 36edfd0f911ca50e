// DecodedFile: reads a file as a stream, and decompresses it if it is compressed (gzip, zstd).
#pragma once

#include <memory>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Reads one file from front to back in blocks of 128 KiB. The file's first bytes decide whether it is
// decompressed, not its name. Several gzip members or zstd frames in a row form one stream. Not thread-safe.
class DecodedFile {
 public:
  // Begins at byte `skip`; above 0 only for files that are not compressed (else ErrorCode::kInvalidArgument).
  // kCorrupt when the name says that the file is compressed, and its first bytes do not.
  static Result<std::unique_ptr<DecodedFile>> open(FileSystem& fs, const std::string& path, int64_t skip = 0);
  virtual ~DecodedFile() = default;

  // Appends the next piece of content to `text`. Returns false at the end of a complete stream.
  // ErrorCode::kCorrupt, without the file's name, when the stream is truncated or damaged.
  virtual Result<bool> append_to(std::string& text) = 0;

  // Bytes of the stored file that hold the content given so far. Exact for a plain file, else rounded to a
  // block.
  virtual int64_t stored_bytes() const = 0;

  // SHA-256 of the stored file, in hexadecimal, computed from the same bytes that were decoded. Only after
  // append_to() gave false. "" when reading did not begin at the file's start.
  virtual std::string file_sha256() = 0;
};

}  // namespace ostro::io
