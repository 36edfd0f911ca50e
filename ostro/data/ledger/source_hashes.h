// Hashes of source files that another time or place than the ledger's made a store compare by content, kept
// beside it, so that they are read once and not at every start.
#pragma once

#include <map>
#include <string>

#include "ostro/base/error.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

inline constexpr const char* kSourceHashesFile = "source_hashes.json";

// Not thread-safe. The file is a short cut and nothing else: a damaged one counts as none, and one that
// cannot be written, as in a folder that is only read, is not missed.
class SourceHashes {
 public:
  // Of the store in `cache_dir`; nothing is read until a hash is asked for.
  SourceHashes(io::FileSystem& fs, std::string cache_dir) : fs_(fs), cache_dir_(std::move(cache_dir)) {}

  // SHA-256 of the file's bytes, 64 hexadecimal digits: the one that was kept for this path, size and time,
  // else of the file, which is read whole. Errors: as reading it.
  Result<std::string> of(const SourceFile& source);

  // Keeps the hashes that were asked for when a file was read for one.
  void keep() const;

 private:
  struct Known {
    int64_t size = 0, mtime_ns = 0;
    std::string sha256;
  };

  void load();

  io::FileSystem& fs_;
  std::string cache_dir_;
  bool loaded_ = false;
  int64_t bytes_read_ = 0;
  std::map<std::string, Known> kept_, asked_;  // by path
};

}  // namespace ostro::data
