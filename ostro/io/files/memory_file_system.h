// MemoryFileSystem: a file system in memory that can simulate a power loss, for tests.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Every file knows which of its bytes are durable. Every directory knows its names, which of them are
// durable, and in which order the others changed. Thread-safe. Paths "a/b" and "/a/b" are the same. Errors
// are those of FileSystem.
class MemoryFileSystem final : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // Simulates a power loss. Every file keeps its durable bytes, plus a part of what was appended since;
  // `seed` chooses how much. That part may contain a block of zeros, as when a file's size reaches the disk
  // before its data. Every directory keeps its durable names, plus the first few changes since. Seed 0 keeps
  // only what was durable. Files and locks opened before the crash fail from then on.
  void crash(uint64_t seed);

  // The bytes of a file, for tests that damage it (bit flips, truncation). Null when it does not exist. Owned
  // by the file system, and not protected against other threads.
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
