// ForwardingFileSystem: a base class for file systems that stand in front of another one, see every
// operation, and can count or refuse it.
#pragma once

#include <memory>

#include "ostro/io/files/file_system.h"

namespace ostro::io {

// Forwards everything to `base`, which it does not own. Subclasses act before an operation, and may wrap the
// files that were opened. It is thread-safe if `base` and the subclass are.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& base) : base_(base) {}

  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) final;
  Result<std::unique_ptr<WritableFile>> create(const std::string& path) final;
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) final;
  Result<FileInfo> stat(const std::string& path) final;
  Status truncate(const std::string& path, int64_t size) final;
  Status rename(const std::string& from, const std::string& to) final;
  Status remove(const std::string& path) final;
  Result<std::vector<DirEntry>> list(const std::string& path) final;
  Status make_dirs(const std::string& path) final;
  Status sync_dir(const std::string& path) final;
  Status sync_tree(const std::string& path) final;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) final;
  bool is_object_store(const std::string& path) final { return base_.is_object_store(path); }

 protected:
  enum class Operation {
    kOpen,
    kCreate,
    kOpenAppend,
    kStat,
    kTruncate,
    kRename,
    kRemove,
    kList,
    kMakeDirs,
    kSyncDir,
    kSyncTree,
    kLock
  };

  // Called before each operation. If it fails, its error is the operation's result and `base` is not called.
  // For rename, `path` is the source.
  virtual Status before(Operation operation, const std::string& path) = 0;
  // Wrap a file that was opened for reading or for writing.
  virtual std::unique_ptr<RandomAccessFile> reading(std::unique_ptr<RandomAccessFile> file) { return file; }
  virtual std::unique_ptr<WritableFile> writing(std::unique_ptr<WritableFile> file,
                                                const std::string& /*path*/) {
    return file;
  }

 private:
  FileSystem& base_;
};

}  // namespace ostro::io
