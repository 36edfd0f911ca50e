// Loop: the coordinator's thread: it accepts connections, admits workers that know the secret, and carries
// messages between members and the roster. Private to the room.
//
// Messages of an unproved connection cannot stop it, make it grow or keep it waiting.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/journal/journal.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/relay/relay_hub.h"
#include "ostro/cluster/roster.h"
#include "ostro/cluster/watch/job_watch.h"
#include "ostro/cluster/wire/channel.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

// Owns the listening socket, the connections and the roster.
class Loop {
 public:
  // `certificates`: of the job; null: connections without TLS.
  Loop(const CoordinatorOptions& options, Socket listener, Journal journal,
       std::shared_ptr<tls::Certificates> certificates);
  // Runs until stop(). Other threads may call stop() and the functions below.
  void run();
  void stop();
  int port() const { return port_; }
  int64_t epoch() const { return epoch_; }
  int64_t members() const { return member_count_; }
  void stop_run();
  std::optional<int64_t> over() const { return over_ ? std::optional<int64_t>(status_) : std::nullopt; }
  const JobWatch& watch() const { return watch_; }
  // Bytes of all messages that came and went.
  int64_t moved() const { return moved_; }
  const RelayHub& relay() const { return relay_; }

 private:
  enum class Stage { kStranger, kProved, kMember, kLeaving };
  struct Peer {
    explicit Peer(Socket socket) : channel(std::move(socket)) {}
    Channel channel;
    Stage stage = Stage::kStranger;
    size_t most = kMostBytesOfStranger;  // bytes of a message
    bool undecided = false;              // whether it begins TLS, or asks for the relay
    bool in_clear = false;               // it has not begun TLS, and so may only ask for the relay
    std::string nonce, from;             // from: its address
    int64_t member = 0;                  // of the roster
    Clock::time_point came;
    Clock::time_point until;  // the time at which it is dropped if it stays silent
    bool finished = false;    // leaving, and nothing more will be sent to it
    std::string goes;         // the reason that it announced for its end
    std::string lost;         // the reason why it is to be dropped; "": it is not
  };

  void wait();
  void read(Peer& peer);
  void handle(Peer& peer, std::string_view message);
  void handle_proof(Peer& peer, MessageReader& reader);
  void handle_relay(Peer& peer, MessageReader& reader);
  void handle_hello(Peer& peer, MessageReader& reader);
  void handle_member(Peer& peer, MessageReader& reader);
  void handle_slices(Peer& peer, MessageReader& reader);
  void refuse(Peer& peer, const std::string& why, Kind kind = Kind::kRefused);
  void greet(Peer& peer);
  bool decide(Peer& peer);
  void warn_of_stranger(const std::string& why);
  void expire();
  void accept_some();
  bool room_for_stranger();
  void settle();
  void begin_epochs();
  void remove_lost_members();
  void drop_lost();
  void flush();
  void push(Peer& peer, const std::string& message);
  static void lose(Peer& peer, const std::string& why);
  void tell(const Event& event) const;

  CoordinatorOptions options_;
  Socket listener_;
  int port_;
  Journal journal_;
  const std::shared_ptr<tls::Certificates> certificates_;
  Waker waker_;
  std::atomic<bool> stopped_ = false, stops_run_ = false, over_ = false;
  std::atomic<int64_t> status_ = 0;  // of a run that is over
  std::atomic<int64_t> epoch_ = 0;
  std::atomic<int64_t> member_count_ = 0;
  std::atomic<int64_t> moved_ = 0;
  std::list<Peer> peers_;  // by age
  std::map<int64_t, Peer*> members_;
  Roster roster_;
  int64_t told_epoch_ = 0;  // the last that was reported to the observer
  JobWatch watch_;
  Clock::time_point
      next_accept_;  // not before: too many strangers are here, or the system has no more sockets
  Clock::time_point next_warning_;  // of a wrong secret, not before
  Clock::time_point next_record_;   // not before: the journal could not be written
  Clock::time_point next_tell_;     // of that, not before
  bool told_of_accept_ = false;     // that no connection can be accepted
  std::optional<Clock::time_point> unrecorded_since_;
  RelayHub relay_;
};

}  // namespace ostro::cluster
