// LineReader: reads lines of text files, plain or compressed (.gz, .zst), as a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"
#include "ostro/io/read/decoded_file.h"

namespace ostro::io {

struct LineOptions {
  int64_t max_line = int64_t{1} << 30;  // bytes
  // A longer line is an error, or with pass_long an empty line for which LineReader::line_bytes() gives the
  // length. So a file that is not text cannot fill the memory.
  bool pass_long = false;
  // Reading begins after this many lines. `skip_bytes` is the byte where they end, if it is known (0: not
  // known); only for plain files.
  int64_t skip_lines = 0, skip_bytes = 0;
};

// Reads one file. Memory is bounded by its longest line plus a few hundred KiB. Not thread-safe.
class LineReader {
 public:
  static Result<LineReader> open(FileSystem& fs, const std::string& path, const LineOptions& options = {});

  // Sets `line` to the next line, without its "\n" or "\r\n". False at the end. The last line needs no "\n".
  // A byte order mark at the start of the file is dropped. The text is valid until the next call.
  // ErrorCode::kCorrupt, with file and line, when the stream is truncated or damaged.
  Result<bool> next(std::string_view& line);

  // About the line last returned: its number, from 1; the byte of the unpacked file where it begins (after a
  // byte order mark); its length in bytes, without the line end.
  int64_t line_number() const { return line_number_; }
  int64_t line_begin() const { return line_begin_; }
  int64_t line_bytes() const { return line_bytes_; }
  // The byte of the unpacked file where the next line begins.
  int64_t next_byte() const { return buffer_byte_ + static_cast<int64_t>(begin_); }

  // Ends the life of the text last returned, and frees the memory of a long line.
  void release_line();

  // The byte of the stored file where the next line begins. For a compressed file this is an estimate that
  // never falls, and reaches the file's size only after the last line.
  int64_t stored_bytes() const;

  // After next() gave false: see DecodedFile.
  std::string file_sha256() { return file_->file_sha256(); }

 private:
  LineReader(std::unique_ptr<DecodedFile> file, std::string path, const LineOptions& options)
      : file_(std::move(file)),
        path_(std::move(path)),
        options_(options),
        line_number_(options.skip_lines),
        buffer_byte_(options.skip_bytes),
        stored_begin_(options.skip_bytes),
        stored_end_(options.skip_bytes) {}
  void drop_taken();
  Status read_more();
  Status pass_long_line();

  std::unique_ptr<DecodedFile> file_;
  std::string path_;
  LineOptions options_;
  int64_t line_number_, line_begin_ = 0, line_bytes_ = 0;
  std::string buffer_;
  int64_t buffer_byte_;                // byte of the unpacked file that is the first in the buffer
  int64_t stored_begin_, stored_end_;  // bytes of the stored file that hold the buffer's text
  size_t begin_ = 0;                   // position in the buffer of the next line
  bool ended_ = false;
};

}  // namespace ostro::io
