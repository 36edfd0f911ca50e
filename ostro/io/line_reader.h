// Lines of text files, plain or compressed (.gz, .zst), read as a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/io/file_system.h"

namespace ostro::io {

// Reads one file from its beginning, in memory bounded by its longest line plus a few hundred KiB.
// Compression is told by the file's first bytes, not its name; several gzip members or zstd frames in a row
// are one stream. Not thread-safe.
class LineReader {
 public:
  // A line longer than `max_line` bytes is an error, so that a file that is not text cannot fill memory.
  static Result<LineReader> open(FileSystem& fs, const std::string& path,
                                 int64_t max_line = int64_t{1} << 30);

  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // Sets `line` to the next line without its "\n" and a "\r" before that; false at the end. The last line
  // needs no "\n"; a byte order mark before the first is dropped. The text lives until the next call.
  // A truncated or damaged stream is ErrorCode::kCorrupt and names file and line.
  Result<bool> next(std::string_view& line);

  // Lines handed out so far: the number (from 1) of the line last returned.
  int64_t line_number() const { return line_number_; }

 private:
  class Source;
  LineReader(std::unique_ptr<Source> source, std::string path, int64_t max_line);

  std::unique_ptr<Source> source_;
  std::string path_;
  int64_t max_line_;
  int64_t line_number_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not handed out yet
  bool ended_ = false;
};

}  // namespace ostro::io
