// Relay, RelayCall: connections between two workers of which neither reaches the other, through a third
// process that both reach. It only carries bytes: both workers prove the secret to each other, and encrypt if
// they do, as on any other connection (handshake.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/socket.h"

namespace ostro::dist {

// A connection that is being made. Not thread-safe.
class RelayCall {
 public:
  virtual ~RelayCall() = default;
  // The descriptor for poll() (-1: turn() is to be called again after a while), and whether to wait for
  // writing besides reading.
  virtual int fd() const = 0;
  virtual bool wants_to_write() const = 0;
  // Goes on as far as it can without waiting. Returns true when the other worker has called, too: then take()
  // has the connection, and no byte of it is read yet. Errors: kIo when the connection with the relay cannot
  // be made or ends; kInvalidArgument when the relay refuses this process; kCorrupt.
  virtual Result<bool> turn() = 0;
  virtual Socket take() = 0;
};

// The interface. Thread-safe.
class Relay {
 public:
  virtual ~Relay() = default;
  // Begins a call of worker `own` of a group to worker `peer`, which calls in the same way. Errors: kIo.
  virtual Result<std::unique_ptr<RelayCall>> call(const std::string& group, int64_t own, int64_t peer) = 0;
};

}  // namespace ostro::dist
