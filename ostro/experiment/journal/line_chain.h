// LineChain: a file that is a hash chain of lines, made as those of a run's chain
// (docs/reference/formats/chain.md): canonical JSON, each with the hash "h" over the line before and its own
// text. So no line can be changed, put in or taken out of the middle unseen. One thread uses it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::lab {

struct HashedLine {
  std::string entry;  // canonical JSON without "h"
  std::string hash;   // "h"
};

// The hash of a line that follows the one with the hash `previous`.
std::string line_hash(const std::string& previous, const std::string& entry);
// The canonical JSON of an entry.
std::string line_text(const nlohmann::json& entry);

class LineChain {
 public:
  // Reads the file; none is an empty chain. An unfinished last line is cut off when the next one is written.
  // `noun` is what messages call the file. Errors: kCorrupt, with file and line.
  static Result<LineChain> open(io::FileSystem& fs, const std::string& path, const std::string& noun);

  // Appends a line and syncs it.
  Status append(const nlohmann::json& entry);

  const std::vector<HashedLine>& lines() const { return lines_; }
  // The hash of the last line; empty for an empty chain.
  std::string head() const { return lines_.empty() ? "" : lines_.back().hash; }
  const std::string& path() const { return path_; }

 private:
  LineChain(io::FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}
  Status read(const std::string& noun);

  io::FileSystem* fs_;
  std::string path_;
  int64_t bytes_ = 0;       // of whole lines
  int64_t torn_bytes_ = 0;  // behind them
  std::vector<HashedLine> lines_;
};

}  // namespace ostro::lab
