// Follower: has each new checkpoint of a run that goes on served.
//
// It looks for a new name in RUN/checkpoints. A checkpoint that cannot be loaded (yet), because it is not in
// the chain or damaged, is tried again later, and the log has why. One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::serve {

class Follower {
 public:
  // Serves the run's newest checkpoint from now on, unless it is the one that is served. Returns the name of
  // its state.
  using ServeNewest = std::function<Result<std::string>(const std::string& served_state)>;

  // `state`: the name of the state that is served. `fs` must outlive it. Error: `run` has no folder of
  // checkpoints.
  static Result<Follower> create(io::FileSystem& fs, const std::string& run, std::string state,
                                 ServeNewest serve_newest);

  // Serves a new checkpoint if there is one.
  void look();

 private:
  Follower(io::FileSystem& fs, std::string folder, std::string state, ServeNewest serve_newest)
      : fs_(&fs),
        folder_(std::move(folder)),
        state_(std::move(state)),
        serve_newest_(std::move(serve_newest)) {}

  io::FileSystem* fs_;
  std::string folder_, state_, newest_;
  ServeNewest serve_newest_;
  std::string trouble_;                            // that was logged last
  std::chrono::steady_clock::time_point again_{};  // not before
};

}  // namespace ostro::serve
