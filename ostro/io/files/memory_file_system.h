// Files in memory that know which of their bytes and names a power cut would leave.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// For tests. Every file holds what was written and what of it is durable; every directory its names, those
// that are durable, and the changes in between in order. Thread-safe. Paths "a/b" and "/a/b" are the same.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // Loses power: every file keeps its durable bytes and, chosen by `seed`, a part of what was appended since
  // (maybe with a block of zeros in it, as when a file's size reaches the disk before its data); every
  // directory its durable names and a first part of the changes since. Seed 0 keeps nothing that was not
  // durable. Files and locks opened before the crash fail from then on.
  void crash(uint64_t seed);

  // The bytes of a file, to be altered at will (bit flips, truncation); null when it does not exist.
  std::string* content(const std::string& path);

  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override;
  Result<FileInfo> stat(const std::string& path) override;
  Status truncate(const std::string& path, int64_t size) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<DirEntry>> list(const std::string& path) override;
  Status make_dirs(const std::string& path) override;
  Status sync_dir(const std::string& path) override;
  Status sync_tree(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) override;

 private:
  struct State;
  class ReadHandle;
  class WriteHandle;
  class Lock;

  std::shared_ptr<State> state_;  // handles may outlive this object
};

}  // namespace ostro::io
