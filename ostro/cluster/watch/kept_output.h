// KeptOutput: keeps what the workers of one place write to standard error in a file, each line with its time
// and the process: "2026-11-21T10:04:33Z 4711 the line".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ostro/io/files/rotated_file.h"

namespace ostro::cluster {

inline constexpr int64_t kMostBytesOfOutput = int64_t{1} << 20;  // of each of the two files of a place

// The file at `path`, and path.1 with what came before it. Of a line that a terminal would draw again and
// again (a carriage return) the last state is kept, without the terminal's codes. A file that cannot be
// written is one warning, and the text is lost. Not thread-safe.
class KeptOutput {
 public:
  KeptOutput(io::FileSystem& fs, std::string path, int64_t most = kMostBytesOfOutput);

  // The process `pid` has written these bytes.
  void add(int64_t pid, std::string_view bytes);
  // It has ended: a line without an end is whole.
  void end(int64_t pid);

 private:
  void line(int64_t pid);

  const std::string path_;
  io::RotatedFile file_;
  std::string line_;         // that has no end yet
  bool drawn_over_ = false;  // a carriage return stands behind it
  bool failed_ = false;
};

}  // namespace ostro::cluster
