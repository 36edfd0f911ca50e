// open_direct: opens files whose reads go past the page cache. It is for files that are read in large pieces
// and are larger than memory, of which nothing would still be cached when they are read again.
#pragma once

#include <memory>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// A file that can be read past the page cache. The files of local_file_system() are of this kind.
class DirectFile : public RandomAccessFile {
 public:
  // From now on reads go past the page cache, if the system and the file's place allow it. Call before other
  // threads read.
  virtual void read_directly() = 0;
  // Of the open file; it stays this object's.
  virtual int descriptor() const = 0;
};

// Opens a file whose large reads go past the page cache where that is possible. Reads may begin anywhere and
// have any length, in memory of any alignment; those whose offset and memory are equal modulo kDirectBlock
// are not copied. Everywhere else (other file systems, places such as tmpfs) this is fs.open().
Result<std::unique_ptr<RandomAccessFile>> open_direct(FileSystem& fs, const std::string& path);

// A multiple of the unit in which disks are read, bytes.
inline constexpr int64_t kDirectBlock = 4096;

// Fills `out` from `offset` on, or up to the end of the file, from a descriptor with O_DIRECT. Where the
// system turns out to refuse such reads, O_DIRECT is cleared on the descriptor. Returns the number of bytes,
// or -1 with errno.
int64_t read_direct(int descriptor, int64_t offset, std::span<std::byte> out);

}  // namespace ostro::io
