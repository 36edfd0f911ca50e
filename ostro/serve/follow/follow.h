// Follower: has each new checkpoint of a run that goes on served.
//
// It looks for a new name in RUN/checkpoints. A checkpoint that cannot be loaded (yet), because it is not in
// the chain or damaged, is tried again later, each time after a longer pause, and the log has why. One thread
// at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::serve {

// What is served: the name of the checkpoint's folder ("step-00000010") and of its state.
struct ServedCheckpoint {
  std::string folder, state;
};

class Follower {
 public:
  // Serves the run's newest checkpoint that can be loaded from now on, unless it is `served`. Returns it.
  using ServeNewest = std::function<Result<ServedCheckpoint>(const ServedCheckpoint& served)>;

  // `fs` must outlive it. Error: `run` has no folder of checkpoints.
  static Result<Follower> create(io::FileSystem& fs, const std::string& run, ServedCheckpoint served,
                                 ServeNewest serve_newest);

  // Serves a new checkpoint if there is one. Returns whether another state is served from now on.
  bool look();

 private:
  Follower(io::FileSystem& fs, std::string folder, ServedCheckpoint served, ServeNewest serve_newest)
      : fs_(&fs),
        folder_(std::move(folder)),
        served_(std::move(served)),
        serve_newest_(std::move(serve_newest)) {}
  void put_off(const std::string& newest, const std::string& why);

  io::FileSystem* fs_;
  std::string folder_;
  ServedCheckpoint served_;
  ServeNewest serve_newest_;
  std::string trouble_;                            // that was logged last
  std::chrono::seconds pause_{0};                  // after a checkpoint that could not be loaded
  std::chrono::steady_clock::time_point again_{};  // not before
};

}  // namespace ostro::serve
