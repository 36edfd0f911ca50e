// A disk that goes wrong at a chosen moment.
#pragma once

#include <memory>

#include "ostro/io/files/forwarding_file_system.h"

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
class FaultyFileSystem final : public ForwardingFileSystem {
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
