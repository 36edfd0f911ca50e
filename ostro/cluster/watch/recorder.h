// Recorder: keeps RUN/cluster.json up to date: about once a second, and when something happens.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ostro/cluster/watch/job_watch.h"

namespace ostro::cluster {

// Owns a thread, so that a slow disk does not delay the coordinator.
class Recorder {
 public:
  // The mesh of that many workers, as text.
  using Mesh = std::function<std::string(int64_t workers)>;
  // Without a path it does nothing. `watch` must outlive it.
  Recorder(std::string path, Mesh mesh, const JobWatch& watch);
  ~Recorder();  // writes once more

 private:
  void run();
  void write();

  const std::string path_;
  const Mesh mesh_;
  const JobWatch& watch_;
  bool failed_ = false;  // the last write failed; only the first failure in a row is logged
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace ostro::cluster
