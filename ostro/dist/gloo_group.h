// connect_gloo: a group of workers in processes of their own, on one or several machines, connected by TCP
// (Gloo's transport). Gloo only moves bytes here: its sums depend on the number of workers, ours do not
// (numerics.md N8).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/group.h"
#include "ostro/dist/key_value.h"
#include "ostro/dist/reach.h"
#include "ostro/ir/program/mesh.h"

namespace ostro::dist {

struct GlooOptions {
  Reach reach;         // how peers reach this worker
  std::string secret;  // shared by the job; every pair proves it
  bool tls = false;    // encrypt the connections, with certificates that follow from the secret
  int64_t epoch = 0;   // the epoch's number, for fault_point() (base/watch/fault_point.h)
  // meet_timeout: how long to wait until all workers have called; none: as long as the store answers.
  // connect_timeout: how long their connections may take after that.
  std::optional<std::chrono::milliseconds> meet_timeout;
  std::chrono::milliseconds connect_timeout{30'000};
  // A connection counts as lost when the other machine acknowledges nothing for this long.
  std::chrono::milliseconds link_timeout{60'000};
  // Returns how long an exchange may wait while no byte moves; nothing: as long as the connections last. A
  // thread of the group calls it. An empty function means no limit.
  std::function<std::optional<std::chrono::milliseconds>()> exchange_limit;
  std::function<bool()> given_up;  // true ends the waiting for others (kBusy). May be empty
};

// Connects the mesh.size() workers, each of which calls this with the same `prefix` (unique for each group).
// Errors name the rank and the step that failed; nothing throws. The process ignores SIGPIPE from then on.
//
// A group that had any error stays unusable: every later exchange gives that error, and the connections are
// closed, so that the peers get one too. The destructor of a group without an error tells the peers and
// waits, for two seconds at most, until they have done as many exchanges: their last exchange with this
// worker still succeeds, the next one is an error.
Result<std::unique_ptr<Group>> connect_gloo(const ir::Mesh& mesh, int64_t rank, KeyValue& store,
                                            const std::string& prefix, const GlooOptions& options);

}  // namespace ostro::dist
