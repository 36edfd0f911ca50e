// LoopGroup: collectives between threads of one process: the workers of a mesh pass messages through shared
// memory. Used by tests of partitioned programs, and by several workers on one machine.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ostro/ir/program/mesh.h"
#include "ostro/runtime/collectives.h"

namespace ostro::dist {

// The group of mesh.size() workers. Owns the memory that they share, so it must outlive their threads.
class LoopGroup {
 public:
  explicit LoopGroup(ir::Mesh mesh);
  ~LoopGroup();
  LoopGroup(const LoopGroup&) = delete;
  LoopGroup& operator=(const LoopGroup&) = delete;

  // The view of one worker, 0 <= rank < mesh.size(); owned by the group, used by one thread.
  runtime::Collectives& worker(int64_t rank);

  // Ends every exchange, present and future, with an error that carries `reason`; for a worker that failed,
  // so that the others do not wait for it. The first reason wins. Thread-safe.
  void abort(const std::string& reason);

 private:
  struct Shared;
  class Worker;
  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Runs work(collectives) for every worker of the mesh, each in its own thread, and waits for all. A worker's
// error aborts the group, so that no other waits for it, and is returned.
Status run_workers(const ir::Mesh& mesh, const std::function<Status(runtime::Collectives&)>& work);

}  // namespace ostro::dist
