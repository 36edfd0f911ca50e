// Socket: an open TCP socket of this process, and the system calls that connections between workers need.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/net/host_port.h"

namespace ostro::dist {

// Owns a file descriptor; -1: none. Programs that the process starts do not inherit it.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  // Gives the descriptor away.
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void close();

 private:
  int fd_ = -1;
};

// Where a worker listens.
struct Listener {
  Socket socket;  // does not block
  std::string host,
      port;  // by which others reach it: in numbers, unless another host is advertised (reach.h)
};

// Listens at the first port of `ports` that is free ({}: any one) of this address, which is a name or number
// of this host. `backlog`: how many connections may wait. Errors: those of open_listener (base/net/listen.h).
Result<Listener> listen_at(const std::string& address, int backlog, const PortRange& ports = {});
// The next connection that waits; not open when there is none. It does not block.
Socket accept_from(const Listener& listener);
// A connection that is being made: poll() says when it is writable, and connect_error() what came of it (0:
// it is connected).
struct Begun {
  Socket socket;
  size_t next = 0;   // the number of the host's next address, which may be tried instead; 0: there is none
  size_t count = 1;  // how many addresses the host has
};

// Begins to connect to the address of this number, or the first one after it to which that can be begun.
// Errors: kNotFound when the host is a name that has no address, or for which no name server has answered
// yet; kInvalidArgument; kIo.
Result<Begun> begin_connect(const std::string& host, const std::string& port, size_t which = 0);
int connect_error(const Socket& socket);

// From now on the system breaks this connection when the other machine has acknowledged nothing for `limit`,
// whether or not something is on its way. A process that only computes loses no connection: its system
// acknowledges. At least a second.
void break_when_silent(const Socket& socket, std::chrono::milliseconds limit);
// Bytes that have come over this connection, and those that were sent and acknowledged; 0 when `fd` is not
// connected.
int64_t bytes_moved(int fd);
// The address at the other end of a connection, in numbers and without the port, for messages;
// "an unknown address" when `fd` is not connected.
std::string peer_address(int fd);

}  // namespace ostro::dist
