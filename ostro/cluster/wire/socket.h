// Socket, Waker: TCP sockets that never block, and a way to wake a thread that waits for some.
#pragma once

#include <chrono>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/net/host_port.h"
#include "ostro/base/net/look_up.h"

namespace ostro::cluster {

using Clock = std::chrono::steady_clock;

// Owns a file descriptor. Programs that the process starts do not inherit it: a connection must end with its
// owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  int fd() const { return fd_; }
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

// Makes poll() return in another thread: poll fd(), and call clear() when it is readable. Thread-safe.
class Waker {
 public:
  Waker();
  int fd() const { return event_.fd(); }
  void wake();
  void clear();

 private:
  Socket event_;
};

// Returns a socket that listens at an address of this machine, or at all of them (kAnyAddress), at the first
// port that is free ({0, 0}: any one). Errors: kInvalidArgument when it is no address of this machine, or one
// off loopback although `loopback_only`; kBusy when all ports are in use.
Result<Socket> listen_at(const std::string& address, const PortRange& ports, bool loopback_only);
// The port that a socket listens at.
int port_of(const Socket& socket);
// The next connection that waits at a listening socket; kBusy when there is none, kIo when the system
// refuses.
Result<Socket> accept_from(const Socket& listener);
// What is kept from one connect_to() to the next for the same place, so that short attempts do not begin from
// nothing: a name server may be away meanwhile, and each attempt may have time for few of many addresses.
struct KnownAddresses {
  AddressList list;  // null: none yet
  size_t first = 0;  // the number of the one that is tried first: where the last attempt came to
};

// Connects to the first of the host's addresses that can be reached; tries again while its name has no
// address or no process listens, and logs this after two seconds. With `known` it waits for no name server
// while there are older addresses. `what` listens there, for messages. Errors: kInvalidArgument for a text
// that is no host, kIo at the deadline.
Result<Socket> connect_to(const std::string& host, int port, Clock::time_point deadline,
                          KnownAddresses* known = nullptr, const std::string& what = "coordinator");

// The time `timeout` from now; at most ten years, so that any number of milliseconds may be given.
Clock::time_point deadline_after(std::chrono::milliseconds timeout);
// Milliseconds from now to a time as poll() wants them, rounded up: 0 when it has come.
int poll_milliseconds(Clock::time_point until);

}  // namespace ostro::cluster
