#include "ostro/cluster/wire/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

namespace ostro::cluster {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const std::string& host, int port, int flags) {
  if (port < 0 || port > 65535) return invalid_argument(fmt::format("{} is no port (0 to 65535)", port));
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (failed != 0) return invalid_argument(fmt::format("host '{}': {}", host, gai_strerror(failed)));
  return Addresses(list);
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr) >> 24 == 127;
  }
  return address.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

void set_option(const Socket& socket, int level, int name) {
  const int on = 1;
  setsockopt(socket.fd(), level, name, &on, sizeof on);
}

Socket new_socket(const addrinfo& address) {
  return Socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// One attempt; the system's number of the error, 0 when it is connected.
int try_connect(const Socket& socket, const addrinfo& address, Clock::time_point deadline) {
  if (socket.fd() < 0) return errno;
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd wait{socket.fd(), POLLOUT, 0};
  while (true) {
    const int ready = poll(&wait, 1, poll_milliseconds(deadline));
    if (ready > 0) break;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
  int failed = 0;
  socklen_t size = sizeof failed;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &failed, &size);
  return failed;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Waker::Waker() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  OSTRO_CHECK(event_.fd() >= 0, "eventfd: {}", std::strerror(errno));
}

void Waker::wake() {
  const uint64_t one = 1;
  // It can only fail when the counter is full, and then the thread is awake anyway.
  if (write(event_.fd(), &one, sizeof one) < 0) return;
}

void Waker::clear() {
  uint64_t count;
  if (read(event_.fd(), &count, sizeof count) < 0) return;
}

Result<Socket> listen_at(const std::string& address, int port, bool loopback_only) {
  ASSIGN_OR_RETURN(const Addresses list, resolve(address, port, AI_PASSIVE));
  if (loopback_only && !is_loopback(*list)) {
    return invalid_argument(
        fmt::format("the coordinator would listen at {}, which other machines reach, without a secret: set "
                    "OSTRO_JOB_SECRET, or use 127.0.0.1",
                    address));
  }
  Socket socket = new_socket(*list);
  // Connections of a coordinator that has just ended must not keep its port from the next one.
  set_option(socket, SOL_SOCKET, SO_REUSEADDR);
  if (socket.fd() < 0 || bind(socket.fd(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(socket.fd(), 1024) != 0) {
    const int failed = errno;
    const std::string message =
        fmt::format("cannot listen at {}:{}: {}", address, port, std::strerror(failed));
    if (failed == EADDRINUSE)
      return busy(message + (port == 0 ? "; no port of net.ipv4.ip_local_port_range is free"
                                       : "; choose another port, or 0 for any"));
    return failed == EADDRNOTAVAIL ? invalid_argument(message) : io_error(message);
  }
  return socket;
}

int port_of(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Result<Socket> accept_from(const Socket& listener) {
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.fd() < 0) {
    const int failed = errno;
    const std::string message = fmt::format("accept: {}", std::strerror(failed));
    const bool lacks = failed == EMFILE || failed == ENFILE || failed == ENOBUFS || failed == ENOMEM;
    return lacks ? io_error(message) : busy(message);
  }
  set_option(socket, IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Result<Socket> connect_to(const std::string& host, int port, Clock::time_point deadline) {
  ASSIGN_OR_RETURN(const Addresses list, resolve(host, port, 0));
  while (true) {
    int failed = 0;
    for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
      Socket socket = new_socket(*address);
      failed = try_connect(socket, *address, deadline);
      if (failed == 0) {
        set_option(socket, IPPROTO_TCP, TCP_NODELAY);
        return socket;
      }
    }
    if (Clock::now() >= deadline) {
      return io_error(fmt::format("no coordinator at {}:{}: {}", host, port, std::strerror(failed)));
    }
    // A worker may be started before its coordinator.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Clock::time_point deadline_after(std::chrono::milliseconds timeout) {
  return Clock::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24 * 3650));
}

int poll_milliseconds(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace ostro::cluster
