// RotatedFile: a text that grows, and of which the newest part is kept: PATH, and PATH.1 with what came
// before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Each of the two files has at most `most` bytes, or one text that is longer. Goes on with a file that is
// there. Not thread-safe; two processes must not write one file. `fs` must outlive it.
class RotatedFile {
 public:
  RotatedFile(FileSystem& fs, std::string path, int64_t most)
      : fs_(fs), path_(std::move(path)), most_(most) {}

  // Appends the text, lines with their ends, which is in one of the files as a whole. A file that ends within
  // a line gets the line's end first. The directory must exist. Errors: those of writing, after which nothing
  // of the text is there, or a part that is a line of its own; a later call tries again.
  Status append(std::string_view text);

 private:
  Status open();

  FileSystem& fs_;
  const std::string path_;
  const int64_t most_;
  int64_t size_ = 0;
  std::unique_ptr<WritableFile> file_;  // null: to be opened
};

}  // namespace ostro::io
