// AsyncSaver: saves checkpoints in the background: the training step pays for the copy, not for the disk.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ostro/checkpoint/save.h"

namespace ostro::checkpoint {

// Writes one checkpoint at a time in its own thread, and prunes old checkpoints after each. It owns the
// thread and the copied data. `fs` must outlive it. Call start() and wait() from one thread only. The
// destructor waits for a running save; an error that wait() did not return is logged.
class AsyncSaver {
 public:
  // `root`: the directory below which each checkpoint gets a directory of its own.
  AsyncSaver(io::FileSystem& fs, std::string root, SaveOptions options = {});
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Starts a save and returns. A tensor with an owner is not copied; the bytes of others are. If a save is
  // still running, waits for it first. If that save failed, returns its error and starts nothing. Passes the
  // failpoint "snapshot".
  Status start(const Info& info, std::span<const Tensor> tensors);

  // The same for tensors that `bring` makes in the saver's thread, before it writes.
  using Bring = std::function<Result<std::vector<Tensor>>()>;
  Status start(const Info& info, Bring bring);

  // Starts a save that `write` carries out in the saver's thread; `write` also has to prune old checkpoints.
  // Its result is empty when this process only took part in a save that another one finishes.
  using Write = std::function<Result<std::optional<Saved>>()>;
  Status start(Write write);

  // Waits for the running save. Returns the last checkpoint that was saved, or the error of the last save
  // (only once). The result is empty if nothing was saved yet.
  Result<std::optional<Saved>> wait();

  // True while a save is running.
  bool running() const;

  // The saves that ended with a checkpoint: how many, the time that all of them took, and the last one; and
  // whether another one is running.
  struct Written {
    int64_t saves = 0;
    double seconds = 0, last_seconds = 0;
    bool running = false;
  };
  Written written() const;

 private:
  void run();

  io::FileSystem& fs_;
  const std::string root_;
  const SaveOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Write> job_;  // set from start() until the thread has written it
  bool stopping_ = false;
  std::optional<Saved> saved_;
  Written written_;
  Status status_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace ostro::checkpoint
