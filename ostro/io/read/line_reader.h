// Lines of text files, plain or compressed (.gz, .zst), read as a stream.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"
#include "ostro/io/read/decoded_file.h"

namespace ostro::io {

struct LineOptions {
  int64_t max_line = int64_t{1} << 30;  // bytes
  // What becomes of a longer line, so that a file that is not text cannot fill memory: an error, or (true) an
  // empty line for which LineReader::line_bytes() tells the length.
  bool pass_long = false;
  // Where to begin: after so many lines, which are so many bytes. Bytes are for plain files only.
  int64_t skip_lines = 0, skip_bytes = 0;
};

// Reads one file in memory bounded by its longest line plus a few hundred KiB. Not thread-safe.
class LineReader {
 public:
  static Result<LineReader> open(FileSystem& fs, const std::string& path, const LineOptions& options = {});

  // Sets `line` to the next line without its "\n" and a "\r" before that; false at the end. The last line
  // needs no "\n"; a byte order mark before the first is dropped. The text lives until the next call.
  // A truncated or damaged stream is ErrorCode::kCorrupt and names file and line.
  Result<bool> next(std::string_view& line);

  // Of the line last returned: its number (from 1); the byte of the unpacked file at which it begins, without
  // a byte order mark; its length in bytes, without line end.
  int64_t line_number() const { return line_number_; }
  int64_t line_begin() const { return line_begin_; }
  int64_t line_bytes() const { return line_bytes_; }
  // The byte at which the next line begins.
  int64_t next_byte() const { return buffer_byte_ + static_cast<int64_t>(begin_); }

  // Ends the life of the text last returned, and gives back the memory that a long line took.
  void release_line();

  // The byte of the file as it is stored at which the next line begins: in a compressed file about that byte,
  // never falling, and the file's size only behind the last line.
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
  int64_t buffer_byte_;                // where the buffer's first byte lies in the unpacked file
  int64_t stored_begin_, stored_end_;  // bytes of the stored file that hold the buffer's text
  size_t begin_ = 0;                   // in the buffer, of what was not handed out yet
  bool ended_ = false;
};

}  // namespace ostro::io
