// CountingFileSystem: counts operations, so that a test can check the cost of reading something.
#pragma once

#include <atomic>

#include "ostro/io/files/forwarding_file_system.h"

namespace ostro::io {

// Forwards to `base`, which it does not own. Thread-safe.
class CountingFileSystem final : public ForwardingFileSystem {
 public:
  struct Counts {
    int64_t opens = 0;       // files opened for reading
    int64_t reads = 0;       // RandomAccessFile::read calls
    int64_t bytes_read = 0;  // bytes that these calls asked for
    int64_t lists = 0;       // directories listed
    int64_t stats = 0;
    bool operator==(const Counts&) const = default;
  };

  explicit CountingFileSystem(FileSystem& base) : ForwardingFileSystem(base) {}

  Counts counts() const;
  void reset();

 private:
  Status before(Operation operation, const std::string& path) override;
  std::unique_ptr<RandomAccessFile> reading(std::unique_ptr<RandomAccessFile> file) override;

  struct Counters {
    std::atomic<int64_t> opens{0}, reads{0}, bytes_read{0}, lists{0}, stats{0};
  };
  class File;

  std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();  // files may outlive this object
};

}  // namespace ostro::io
