// Dialler: the connections that a worker begins when a group meets: to workers of lower rank, as soon as the
// names of their hosts have addresses, and through the relay, where one of two uses it (reach.h). Not
// thread-safe.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/dist/handshake.h"
#include "ostro/dist/key_value.h"
#include "ostro/dist/reach.h"

namespace ostro::dist {

// What a worker that is reached through the relay only tells the others in the place of an address, and what
// one with RelayUse::kAuto tells them behind it.
inline constexpr const char *kThroughRelay = "relay", *kOrRelay = "auto";

class Dialler {
 public:
  // `names` and `store` must outlive it. `patience`: how long direct connections may take before another way
  // is tried instead: shared by the addresses of a host, and twice that until a connected one says anything.
  Dialler(const Reach& reach, const HandshakeNames& names, KeyValue& store,
          std::chrono::milliseconds patience);

  // Begins the connection with `peer`, which has told "HOST PORT", with kOrRelay behind it or not, or
  // kThroughRelay, if it is for this worker to begin. Errors name the worker: kIo when it cannot be reached;
  // kInvalidArgument when it needs a relay and this worker has none.
  Status begin(int64_t peer, const std::string& told, std::list<Handshake>& talks);
  // What poll() is to wait for.
  void add_polls(std::vector<pollfd>& polls) const;
  // Goes on; connections that are made become handshakes. Errors: kIo; those of begin().
  Status turn(std::list<Handshake>& talks);
  // Whether another way is tried instead of a direct connection that has failed (`why`), whose handshake has,
  // or where nothing answers for too long (without an error): the next address of the host, or else the
  // relay, if one of the two has RelayUse::kAuto. Then the handshake is to be dropped.
  bool instead(const Handshake& talk, const Status& why, std::list<Handshake>& talks);
  // Learns which of these workers of higher rank, which have not come, call through the relay. Takes as long
  // as a few answers of the store.
  Status look(const std::vector<int64_t>& missing);

  // Why there is no connection with a worker yet; "": nothing is known.
  std::string why_not(int64_t peer) const;
  // How many workers are connected through the relay.
  size_t relayed() const { return relayed_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  // Where a worker listens, as it has told.
  struct Place {
    std::string host, port;
    bool or_relay = false;                  // one of the two has RelayUse::kAuto
    size_t next = 0;                        // the number of the address that is tried next
    std::chrono::milliseconds patience{0};  // with the one that is tried now
    Clock::time_point since = Clock::now();
    // While the name has no address: why, when it is asked for again, and how long after that.
    std::string why;
    Clock::time_point again;
    std::chrono::milliseconds pause{0};
  };

  Status dial(int64_t peer, Place place, std::list<Handshake>& talks);
  Status call(int64_t peer);
  Status fall_back(int64_t peer, const std::string& why);
  bool has_relay(const Place& place) const { return place.or_relay && reach_.relay != nullptr; }
  std::string relayed_key(int64_t lower, int64_t higher) const;
  Result<std::chrono::milliseconds> time_of_an_answer();

  const Reach& reach_;
  const HandshakeNames& names_;
  KeyValue& store_;
  const std::chrono::milliseconds patience_;
  std::map<int64_t, Place> dialled_, late_;  // who is connected to; whose names have no address yet
  std::map<int64_t, std::unique_ptr<RelayCall>> calls_;  // through the relay, that are not joined yet
  std::set<int64_t> relayed_;                            // with whom the relay is, or will be, between
  size_t looked_ = 0;
  std::optional<std::chrono::milliseconds> answer_time_;  // of the store
};

}  // namespace ostro::dist
