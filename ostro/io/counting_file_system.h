// Counts what goes through it, so that a test can say how many reads something may cost.
#pragma once

#include <atomic>

#include "ostro/io/file_system.h"

namespace ostro::io {

// Forwards everything to `base`, which it does not own. Thread-safe.
class CountingFileSystem final : public FileSystem {
 public:
  struct Counts {
    int64_t opens = 0;       // files opened for reading
    int64_t reads = 0;       // RandomAccessFile::read calls
    int64_t bytes_read = 0;  // bytes those asked for
    int64_t lists = 0;       // directories listed
    int64_t stats = 0;
    bool operator==(const Counts&) const = default;
  };

  explicit CountingFileSystem(FileSystem& base) : base_(base) {}

  Counts counts() const;
  void reset();

  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return base_.create(path);
  }
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return base_.open_append(path);
  }
  Result<FileInfo> stat(const std::string& path) override;
  Status truncate(const std::string& path, int64_t size) override { return base_.truncate(path, size); }
  Status rename(const std::string& from, const std::string& to) override { return base_.rename(from, to); }
  Status remove(const std::string& path) override { return base_.remove(path); }
  Result<std::vector<DirEntry>> list(const std::string& path) override;
  Status make_dirs(const std::string& path) override { return base_.make_dirs(path); }
  Status sync_dir(const std::string& path) override { return base_.sync_dir(path); }
  Status sync_tree(const std::string& path) override { return base_.sync_tree(path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) override {
    return base_.lock(path, owner);
  }

 private:
  struct Counters {
    std::atomic<int64_t> opens{0}, reads{0}, bytes_read{0}, lists{0}, stats{0};
  };
  class File;

  FileSystem& base_;
  std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();  // files may outlive this object
};

}  // namespace ostro::io
