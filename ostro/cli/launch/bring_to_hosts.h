// BringToHosts: brings a copy (cluster/ssh/bring.h) to the machines of a launcher, to several at a time.
#pragma once

#include <chrono>
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

  // Tries each machine, and says in the log what came of it. Returns which have the copy, as soon as each was
  // tried once, or those that have it are `enough` and the others were waited for for a minute more. Machines
  // without the copy are tried again and again after that, by threads of this object.
  std::vector<bool> all(Progress& progress, const std::function<bool(const std::vector<bool>&)>& enough);
  // Whether a worker can be tried there: the machine has the copy, or could not be given it just now.
  bool ready(size_t host);
  // The machine may have lost its copy: it is looked at at once, and is not ready until then.
  void look_again(size_t host);
  // The machines to which a copy was brought since the last call; not those that had it already.
  std::vector<size_t> take_brought();

 private:
  using Clock = std::chrono::steady_clock;
  struct Host {
    bool has = false, tried = false, busy = false;  // tried: since the beginning, or look_again
    Clock::time_point next;                         // when it is tried, if it has no copy
    std::string error;                              // the last one
  };

  // Tries machines whose time has come until the end.
  void work();
  // The machine to be tried next, if its time has come; else the time at which to look again is in `until`.
  Host* due(Clock::time_point& until);
  // Whether the machine has the copy now; the log says it, and an error only where it is a new one.
  bool one(size_t host);
  bool stopped();
  std::vector<bool> have() const;

  io::FileSystem& fs_;
  const cluster::BroughtCopy copy_;
  const std::vector<std::string> hosts_;
  const StartThere start_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Host> found_;
  std::vector<size_t> brought_;
  int64_t sent_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ostro::cli
