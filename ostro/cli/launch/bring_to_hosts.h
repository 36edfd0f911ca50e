// BringToHosts: brings a copy (cluster/ssh/bring.h) to the machines of a launcher, to several at a time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/cluster/ssh/bring.h"

namespace ostro::cli {

// Starts a script on a machine, by its number.
using StartThere = std::function<Result<cluster::LineProcess>(size_t host, const std::string& script)>;

// Its methods are for one thread.
class BringToHosts {
 public:
  BringToHosts(io::FileSystem& fs, cluster::BroughtCopy copy, std::vector<std::string> hosts,
               StartThere start);
  // Ends the attempts.
  ~BringToHosts();
  BringToHosts(const BringToHosts&) = delete;
  BringToHosts& operator=(const BringToHosts&) = delete;

  // Tries each machine once, and says in the log what came of it. Returns which have the copy.
  std::vector<bool> all(Progress& progress);
  // Tries those without the copy again, from time to time, in a thread of its own.
  void keep_trying();

 private:
  // Whether the machine has the copy now; the log says it, and an error only where it is a new one.
  bool one(size_t host);
  bool stopped();

  io::FileSystem& fs_;
  const cluster::BroughtCopy copy_;
  const std::vector<std::string> hosts_;
  const StartThere start_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<bool> has_;
  std::vector<std::string> errors_;  // the last of each machine
  size_t tried_ = 0, next_ = 0;
  int64_t sent_ = 0;
  bool stop_ = false;
  std::thread again_;
};

}  // namespace ostro::cli
