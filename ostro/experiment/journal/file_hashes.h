// FileHashes: the SHA-256 of files, which is computed again only where a file's size or time has changed. One
// thread uses it.
#pragma once

#include <map>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::lab {

class FileHashes {
 public:
  // What is known from earlier is read from `path`; a file that is missing or damaged there costs time only.
  // With `every_byte` nothing of it is used.
  FileHashes(io::FileSystem& fs, std::string path, bool every_byte);

  // The hash of a file's bytes. Errors: those of reading it.
  Result<std::string> sha256(const std::string& file);
  // Writes what is known.
  Status save() const;

 private:
  struct Known {
    int64_t size = 0, mtime_ns = 0;
    std::string sha256;
  };
  io::FileSystem* fs_;
  std::string path_;
  std::map<std::string, Known> known_;
};

}  // namespace ostro::lab
