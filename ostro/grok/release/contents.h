// read_contents: reads the elements of a file and finds values that a trained model cannot have.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ostro/grok/layout/leaves.h"
#include "ostro/io/files/file_system.h"

namespace ostro::grok {

// The result of reading a file.
struct Contents {
  std::string sha256;  // of the file
  std::string error;   // the first damage; empty if there is none
};

// Reads the whole file in blocks; `progress` is called with the size of each. Errors: of the file system
// alone.
Result<Contents> read_contents(const io::RandomAccessFile& file, const StoredTensor& stored,
                               const std::function<void(int64_t)>& progress);

// The results for files that were read before, with the size and time that they had then. Not thread-safe;
// `fs` must outlive it.
class RememberedContents {
 public:
  // Reads the file that the folder `memory` has of `directory`, named by the hash of its absolute path.
  // Anything that is not as save() writes it counts as nothing remembered; so does an empty `memory`, to
  // which nothing is saved.
  RememberedContents(io::FileSystem& fs, const std::string& directory, const std::string& memory);

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
  std::string path_;  // empty: nothing is remembered
  std::map<std::string, Entry> entries_;
};

}  // namespace ostro::grok
