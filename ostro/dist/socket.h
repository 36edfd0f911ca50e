// Socket: an open TCP socket of this process, and the system calls that connections between workers need.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"

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

// Where a worker listens, in numbers.
struct Listener {
  Socket socket;  // does not block
  std::string host, port;
};

// Listens at any free port of this address, which is a name or number of this host. `backlog`: how many
// connections may wait. Errors: kInvalidArgument for an address that is not this host's; kIo.
Result<Listener> listen_at(const std::string& address, int backlog);
// The next connection that waits; not open when there is none. It does not block.
Socket accept_from(const Listener& listener);
// Begins to connect; poll() says when it is writable, and connect_error() what came of it (0: it is
// connected). Errors: kIo.
Result<Socket> begin_connect(const std::string& host, const std::string& port);
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
