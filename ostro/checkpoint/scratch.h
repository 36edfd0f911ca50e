// ScratchFileSystem: stands in front of an object store with the directory of one run, and keeps on a local
// disk what this process writes of that run's checkpoints, so that a restore on this machine need not fetch
// it (trainer.scratch_dir).
//
// It is a cache. What is there may be old, damaged or gone: a reader (CellSource) takes a cell from there
// only if it has the hash of the checkpoint's manifest, which always comes from the store. Nothing that fails
// there is an error of a save or of a restore.
//
//   SCRATCH/ID-HASH/        of the run: its trainer.id, and a hash of its directory's path
//     0/, 1/, ...           of one process each, which holds the lock LOCK there as long as it lives
//       step-00000042/      chunks of that checkpoint, below it under the names that they have in the store
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/files/forwarding_file_system.h"

namespace ostro::checkpoint {

// Forwards everything to `base`. Of what create_once() makes below a checkpoint of the run, the chunks are
// written to the disk, too: under a temporary name, and renamed when the store has them. Thread-safe.
class ScratchFileSystem final : public io::ForwardingFileSystem {
 public:
  // Touches nothing yet. `base`, which has `run_directory`, and `local`, which has the folder `scratch`, must
  // outlive it.
  ScratchFileSystem(io::FileSystem& base, io::FileSystem& local, const std::string& scratch,
                    const std::string& run_directory);
  ~ScratchFileSystem() override;

  // The folders that may have chunks of the checkpoint at `path`: one of each process of this machine that
  // wrote some. None when it is no checkpoint of the run, or when the disk does not answer.
  std::vector<std::string> folders_of(const std::string& path);
  io::FileSystem& local() { return local_; }
  const std::string& folder() const { return folder_; }  // of the run

  Result<std::unique_ptr<io::WritableFile>> create_once(const std::string& path) override;
  Status write_later(const std::string& path, std::string_view content) override;
  Status remove_all(const std::string& path) override;

 private:
  Status before(Operation /*operation*/, const std::string& /*path*/) override { return {}; }

  class Copy;
  class Tee;
  // A chunk of a checkpoint of the run.
  struct Chunk {
    int64_t step = 0;
    std::string below;  // its path below the checkpoint
  };

  std::optional<Chunk> chunk_at(const std::string& path) const;
  std::unique_ptr<Copy> copy_of(const Chunk& chunk);
  Status begin(int64_t step, std::optional<int64_t> last);
  Status take_place();
  Status tidy(int64_t step, std::optional<int64_t> last);
  std::vector<std::string> places();
  void failed(int64_t step, const Error& error);

  io::FileSystem& base_;
  io::FileSystem& local_;
  const std::string checkpoints_;  // of the run, with a slash behind it
  const std::string folder_;
  std::atomic<bool> warned_{false};
  std::mutex mutex_;                   // guards what follows
  std::string place_;                  // the folder of this process; empty: none was taken yet
  std::unique_ptr<io::FileLock> own_;  // of that folder
  std::optional<int64_t> step_;        // that is being written
  bool gave_up_ = false;               // on that step
};

// `fs` as such a file system; null if it is another one.
ScratchFileSystem* scratch_of(io::FileSystem& fs);

}  // namespace ostro::checkpoint
