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

  // Appends the text, which is in one of the files as a whole. The directory must exist. Errors: those of
  // writing; a later call tries again.
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
