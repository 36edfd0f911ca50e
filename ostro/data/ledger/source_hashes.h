// SourceHashes: a cache of source file hashes, kept beside the store.
//
// A source file whose path or time differs from the ledger is compared by its hash. This cache avoids reading
// such a file again at every start.
#pragma once

#include <map>
#include <string>

#include "ostro/base/error.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

inline constexpr const char* kSourceHashesFile = "source_hashes.json";

// Not thread-safe. The cache only saves time: a damaged file is treated as empty, and it is no error when the
// file cannot be written, for example in a read-only folder.
class SourceHashes {
 public:
  // For the store in `cache_dir`. Reads nothing until a hash is asked for.
  SourceHashes(io::FileSystem& fs, std::string cache_dir) : fs_(fs), cache_dir_(std::move(cache_dir)) {}

  // SHA-256 of the file's bytes, 64 hexadecimal digits. Taken from the cache if path, size and time are the
  // same; else the whole file is read. Errors: those of reading.
  Result<std::string> of(const SourceFile& source);

  // Writes all hashes that were asked for to the cache file, if any source file was read.
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
