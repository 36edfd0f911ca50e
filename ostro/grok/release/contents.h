// Reads the elements of a file to see whether they can be what was meant.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ostro/grok/layout/leaves.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// What reading a file found.
struct Contents {
  std::string sha256;  // of the file
  std::string error;   // the first damage; empty if there is none
};

// Reads the whole file in blocks; `progress` is called with the size of each. Errors: of the file system
// alone.
Result<Contents> read_contents(const io::RandomAccessFile& file, const StoredTensor& stored,
                               const std::function<void(int64_t)>& progress);

// What was found of files, and which size and time they had then.
class RememberedContents {
 public:
  // Reads `directory`/.ostro_check.json. Anything that is not as save() writes it counts as nothing
  // remembered.
  RememberedContents(io::FileSystem& fs, const std::string& directory);

  // Null when the file is not known, or has changed.
  const Contents* find(const std::string& file, const io::FileInfo& info) const;
  void add(const std::string& file, const io::FileInfo& info, Contents contents);
  Status save() const;

 private:
  struct Entry {
    int64_t bytes = 0, mtime_ns = 0;
    Contents contents;
  };
  io::FileSystem& fs_;
  std::string path_;
  std::map<std::string, Entry> entries_;
};

}  // namespace ostro::grok
