// Follower: gives a server each new checkpoint of a run that goes on.
//
// It looks for a new name in RUN/checkpoints. A checkpoint that cannot be loaded (yet), because it is not in
// the chain or damaged, is tried again later, and the log has why; the server goes on with what it has. One
// thread at a time.
#pragma once

#include <chrono>
#include <string>

#include "ostro/serve/model_server.h"

namespace ostro::serve {

class Follower {
 public:
  using Load = std::function<Result<std::unique_ptr<ServedModel>>()>;

  // `load` loads the newest checkpoint of `run`; `state`: the name of the state that is served. All must
  // outlive it. Error: `run` has no folder of checkpoints.
  static Result<Follower> create(io::FileSystem& fs, const std::string& run, const std::string& state,
                                 ModelServer& server, Load load);

  // Serves a new checkpoint if there is one.
  void look();

 private:
  Follower(io::FileSystem& fs, std::string folder, std::string state, ModelServer& server, Load load)
      : fs_(&fs),
        folder_(std::move(folder)),
        state_(std::move(state)),
        server_(&server),
        load_(std::move(load)) {}

  io::FileSystem* fs_;
  std::string folder_, state_, newest_;
  ModelServer* server_;
  Load load_;
  std::string trouble_;  // that was logged last
  std::chrono::steady_clock::time_point again_{};
};

}  // namespace ostro::serve
