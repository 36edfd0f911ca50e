// Job: the coordinator of a run and the hosts' talk with it, in virtual time. The decisions are those of
// cluster::Roster; here are the clock, the links, and what a host answers (cluster/link.cc,
// fleet/processes/crew.cc, dist/peer_sockets.cc).
//
// Hosts are named by their place, 0 to hosts - 1. Not thread-safe; there are no errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/cluster/roster.h"
#include "ostro/simulate/step/event_queue.h"
#include "ostro/simulate/step/options.h"

namespace ostro::simulate {

// What the coordinator has sent and received.
struct ControlTraffic {
  int64_t sent = 0, received = 0;  // messages, without heartbeats
  int64_t sent_bytes = 0, received_bytes = 0;
};

class Job {
 public:
  struct Events {
    // All hosts of the current epoch are connected: their places, by rank.
    std::function<void(const std::vector<int64_t>&)> on_formed;
    // All hosts of a planned epoch are prepared: the hosts change over at the end of a step (change_over).
    std::function<void()> on_planned;
    // The planned epoch is given up; the current one goes on.
    std::function<void()> on_dropped;
    // The epoch has ended: a host was lost.
    std::function<void()> on_ended;
  };
  // All must outlive it. `sizes`: those that the epochs may have.
  Job(EventQueue& queue, const SimulateOptions& options, const cluster::Sizes& sizes, Events events);

  // A host comes. While a run goes on it is ready when it has read it; `first`: there is none yet.
  void join(int64_t place, bool first);
  // A host is lost. The coordinator notices it after options.notice_seconds.
  void lose(int64_t place);
  // No host can begin another epoch before this time, because it computes a leaf.
  void busy_until(double time) { busy_until_ = time; }
  // The hosts leave the current epoch and connect as the planned one.
  void change_over();
  // The hosts of the current epoch train. `steps`: that were done.
  void began(int64_t steps);

  int64_t epochs() const { return roster_.epoch(); }
  const ControlTraffic& traffic() const { return traffic_; }

 private:
  struct Host {
    int64_t member = 0;  // of the roster; 0: it is not there
    int64_t epoch = 0;   // that it prepares or works in
    int64_t rank = -1, size = 0;
    bool planned = false, met = false;
  };
  enum class Ask : int64_t { kPrepared, kLook, kAllPrepared, kGo, kAddress, kAddresses };
  static constexpr int64_t kAsks = 8;

  void send(int64_t member, const std::string& message);
  void receive(int64_t place, int64_t member, const std::string& message);
  void reply(int64_t place, Host& host, int64_t request);
  // `decides`: the message may let an epoch begin.
  void to_coordinator(int64_t place, size_t bytes, bool decides, std::function<void(int64_t member)> message);
  void set(int64_t place, Ask ask, const std::string& key, const std::string& value);
  void get(int64_t place, Ask ask, const std::string& key);
  void prepared(int64_t place, int64_t epoch);
  void met(int64_t place);
  void connect(int64_t place);
  void connected(int64_t place, int64_t epoch);
  void look_soon();
  void look();
  cluster::Time time() const;

  EventQueue& queue_;
  const SimulateOptions& options_;
  const Events events_;
  std::vector<Host> hosts_;
  std::vector<int64_t> asked_;     // by place: of a leader, for how many hosts it has asked
  std::vector<int64_t> place_of_;  // by member; 0 is none
  cluster::Roster roster_;
  double coordinator_free_ = 0, busy_until_ = 0;
  int64_t ended_ = 0;                       // the last epoch whose end was reported
  int64_t connected_ = 0, connecting_ = 0;  // hosts; the epoch that they connect
  bool looks_ = false;
  double next_look_ = 0;  // a look that is planned for later; 0: none
  int64_t sent_steps_ = 0;
  ControlTraffic traffic_;
};

}  // namespace ostro::simulate
