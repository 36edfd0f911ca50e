// connect_peers: one TCP connection to each other worker of a group, over which both sides have proved that
// they know the secret of the job.
//
// Any process that reaches the port of a worker can connect to it. One that proves nothing is dropped, and
// the workers connect beside it. Later messages are encrypted and authenticated with `certificates`, neither
// without.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/dist/key_value.h"
#include "ostro/dist/peer_socket.h"
#include "ostro/dist/reach.h"

namespace ostro::dist {

struct PeerOptions {
  int64_t rank = 0, size = 1;
  std::string prefix;  // name of the group: of its keys in the store, and part of every proof
  Reach reach;         // how peers reach this worker
  std::string secret;
  std::shared_ptr<tls::Certificates> certificates;  // of the job; null: no TLS
  int64_t epoch = 0;                                // for fault_point()
  // How long to wait until the others have called; none: as long as the store answers.
  std::optional<std::chrono::milliseconds> meet_timeout;
  // How long the connections may take after that.
  std::chrono::milliseconds connect_timeout{30'000};
  std::function<bool()> given_up;  // asked a few times a second; true ends the waiting (kBusy). May be empty
};

// All `size` workers call it with the same prefix. Returns a connection for each rank; that of this worker is
// not open. Errors name the worker that is missing: kInvalidArgument when it has another `size`, or when the
// address of this worker is not one of this host; kBusy when time is over, or all ports of its range are in
// use; kIo when a worker is lost or the store says that the group has ended.
Result<std::vector<PeerSocket>> connect_peers(const PeerOptions& options, KeyValue& store);

}  // namespace ostro::dist
