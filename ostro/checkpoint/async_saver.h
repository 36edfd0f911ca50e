// Saving in the background: the training step pays for the copy, not for the disk.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ostro/checkpoint/save.h"

namespace ostro::checkpoint {

// Writes one checkpoint at a time in its own thread and prunes old ones after each. Owns that thread and the
// copies; refers to `fs`, which must outlive it. start() and wait() from one thread. The destructor waits; an
// error that nobody asked for by then is logged.
class AsyncSaver {
 public:
  AsyncSaver(io::FileSystem& fs, std::string root, SaveOptions options = {});
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Takes a snapshot and returns: tensors with an owner are kept as they are, the bytes of others are copied.
  // Waits first for a save that is still running, and returns its error (then nothing was started). Passes
  // the failpoint "snapshot".
  Status start(const Info& info, std::span<const Tensor> tensors);

  // Waits for the save that is running: what was saved last, or its error (told once). Nothing saved yet: an
  // empty result.
  Result<std::optional<Saved>> wait();

  // Whether a save is running.
  bool running() const;

 private:
  struct Job {
    Info info;
    std::vector<Tensor> tensors;
  };
  void run();

  io::FileSystem& fs_;
  const std::string root_;
  const SaveOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;  // set from start() until the thread has written it
  bool stopping_ = false;
  std::optional<Saved> saved_;
  Status status_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace ostro::checkpoint
