// FaultyFileSystem: a file system that fails at a chosen moment, for tests.
#pragma once

#include <memory>

#include "ostro/io/files/forwarding_file_system.h"

namespace ostro::io {

// The kind of failure.
enum class Fault {
  kNone,
  kIoError,     // the operation fails and does nothing
  kShortWrite,  // half of an append is written, then it fails (other operations: as kIoError)
  kDiskFull,    // half of this append is written; from then on nothing can be appended or created
  kSyncError,   // the next sync, sync_dir or sync_tree fails, and makes nothing durable
  kCrash,       // half of an append is written; this and every later operation fails
};

// Forwards to `base` (not owned), counts operations and injects one fault. Thread-safe. To test a protocol at
// every moment, run it once without a fault to get writes(). Then, for each n below that, run it with
// inject(kCrash, n), call MemoryFileSystem::crash, and check what is left.
class FaultyFileSystem final : public ForwardingFileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& base);
  ~FaultyFileSystem() override;

  // Write operation number `at` from now on fails (0 is the next one). Write operations are those that
  // writes() counts.
  void inject(Fault fault, int64_t at);
  // Read operation (open, read, stat, list) number `at` from now on fails.
  void inject_read_error(int64_t at);
  // Appends fail with "No space left on device" after this many more bytes.
  void limit_space(int64_t bytes);
  // Ends every fault.
  void heal();

  // Number of operations since the last inject or heal. writes() counts those that change something (create,
  // append, sync, truncate, rename, remove, make_dirs, sync_dir, sync_tree, lock), reads() the others.
  int64_t writes() const;
  int64_t reads() const;
  // Returns whether the injected fault has happened.
  bool triggered() const;

 private:
  Status before(Operation operation, const std::string& path) override;
  std::unique_ptr<RandomAccessFile> reading(std::unique_ptr<RandomAccessFile> file) override;
  std::unique_ptr<WritableFile> writing(std::unique_ptr<WritableFile> file, const std::string& path) override;

  struct State;
  class ReadHandle;
  class WriteHandle;

  std::shared_ptr<State> state_;  // handles may outlive this object
};

}  // namespace ostro::io
