// RelayHub: joins connections of workers that do not reach each other, two at a time, and carries their
// bytes. It understands none of them.
//
// Its thread does not keep the coordinator's waiting, and no worker keeps it waiting: a connection whose
// other end takes nothing is read no further than its buffer, which takes memory only meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "ostro/cluster/wire/socket.h"
#include "ostro/dist/socket.h"

namespace ostro::cluster {

// One end of a pair: worker `own` of a group wants to talk with worker `peer`.
struct RelayEnd {
  std::string group;
  int64_t own = 0, peer = 0;
};

struct RelayLimits {
  int64_t ends = 512;  // connections, joined or not
  // How long one waits for its other end before it is closed; its worker may call again.
  std::chrono::milliseconds waits = std::chrono::minutes(5);
};

// As many ends as this process may have open files, less what it needs for its members: a thousand, at most
// half of them.
int64_t most_relay_ends();

class RelayHub {
 public:
  // `joined`: what both ends are sent first, once they are joined. `silence`: a connection whose machine
  // acknowledges nothing for so long is lost.
  RelayHub(std::string joined, std::chrono::milliseconds silence, RelayLimits limits);
  // Closes all connections.
  ~RelayHub();
  // Takes over a connection whose worker has proved that it knows the secret, and is silent from here on
  // until it is joined. One that calls again takes the place of its earlier connection. Any thread.
  void add(RelayEnd end, Socket socket);
  // Whether there is room for another end. Any thread.
  bool has_room() const;
  const RelayLimits& limits() const { return limits_; }
  // Pairs that are joined now, and bytes that were carried from the first pair on. Any thread.
  int64_t pairs() const { return pairs_; }
  int64_t bytes() const { return bytes_; }

 private:
  class Line;
  using Key = std::tuple<std::string, int64_t, int64_t>;  // the group, and the ranks

  struct Waiting {
    int64_t own = 0;
    dist::Socket socket;
    Clock::time_point until;  // when it is closed
  };

  void run();
  void take_new();
  void meet(const Key& key, Waiting end);
  void drop_gone(const std::vector<int>& readable);
  void drop_late();
  int until_next() const;

  const std::string joined_;
  const std::chrono::milliseconds silence_;
  const RelayLimits limits_;
  Waker waker_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int64_t> pairs_ = 0, bytes_ = 0;
  mutable std::mutex mutex_;                // guards what follows
  std::list<std::pair<Key, Waiting>> new_;  // for the thread
  size_t held_ = 0;                         // ends that the thread has
  std::thread thread_;                      // begins with the first connection
  std::map<Key, Waiting> waiting_;          // of the thread, as are the lines
  std::list<Line> lines_;
};

}  // namespace ostro::cluster
