// A disk that goes wrong at a chosen moment.
#pragma once

#include <memory>

#include "ostro/io/file_system.h"

namespace ostro::io {

// What goes wrong.
enum class Fault {
  kNone,
  kIoError,     // the operation fails and does nothing
  kShortWrite,  // half of an append reaches the file, then it fails (other operations: as kIoError)
  kDiskFull,    // from here on nothing can be appended or created; the append fits half
  kSyncError,   // the next sync, sync_dir or sync_tree fails and makes nothing durable
  kCrash,       // half of an append reaches the file; this and every later operation fails
};

// For tests: forwards to `base` (not owned), counts operations and injects one fault. Thread-safe.
// To try a protocol at every moment: run it once without a fault for writes(), then once for each n below
// that with inject(kCrash, n), followed by MemoryFileSystem::crash and a look at what is left.
class FaultyFileSystem final : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& base);
  ~FaultyFileSystem() override;

  // The operation that changes something with number `at` from now on (0 is the next one) goes wrong.
  void inject(Fault fault, int64_t at);
  // The read (open, read, stat, list) with number `at` from now on fails.
  void inject_read_error(int64_t at);
  // Appends fail with "No space left on device" once this many more bytes were written.
  void limit_space(int64_t bytes);
  // Ends every fault.
  void heal();

  // Operations since the last inject or heal: those that change something (create, append, sync, truncate,
  // rename, remove, make_dirs, sync_dir, sync_tree, lock), and those that do not.
  int64_t writes() const;
  int64_t reads() const;
  // Whether the injected fault has happened.
  bool triggered() const;

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

  FileSystem& base_;
  std::shared_ptr<State> state_;  // handles may outlive this object
};

}  // namespace ostro::io
