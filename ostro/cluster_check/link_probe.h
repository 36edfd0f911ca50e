// LinkListener, probe_link: whether a machine can connect to another one, and how many bytes a second go
// over one connection. A listener takes the one connection that begins with its key, and closes all others.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/cluster/wire/socket.h"
#include "ostro/dist/reach.h"

namespace ostro::cluster_check {

inline constexpr int64_t kMostProbeBytes = int64_t{1} << 32;

class LinkListener {
 public:
  // Listens as a worker would. `key` has 64 characters. Errors: as of dist::listen_at.
  static Result<LinkListener> open(const dist::Reach& reach, const std::string& key);
  // Where others reach it.
  const HostPort& place() const { return place_; }
  // Takes the bytes of the connection with the key, and acknowledges them. Errors: kIo, when none has come
  // within `patience`, or it breaks.
  Status take(std::chrono::milliseconds patience);

 private:
  cluster::Socket socket_;
  HostPort place_;
  std::string key_;
};

// Connects, sends `bytes` bytes and waits until the other side has them. Returns the seconds from the first
// byte to that. Errors: kIo, when no connection is made or it does not end within `patience`; `advice` is
// what helps where a host has an address and does not answer at it ("": nothing).
Result<double> probe_link(const std::string& address, int port, const std::string& key, int64_t bytes,
                          std::chrono::milliseconds patience, const std::string& advice);

}  // namespace ostro::cluster_check
