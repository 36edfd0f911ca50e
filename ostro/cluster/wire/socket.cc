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
#include <thread>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/base/net/listen.h"

namespace ostro::cluster {
namespace {

constexpr std::chrono::milliseconds kLeastAttempt{500}, kMostAttempt{10'000};  // to connect to one address
constexpr std::chrono::seconds kAskAgain{2};                                   // for the addresses of a name
constexpr std::chrono::milliseconds kMostOfAQuestion{200};  // where older addresses are known

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

// Tries each address once, until the deadline; the socket is not open when none was reached, and `failed` is
// the error of the last.
Socket try_each(KnownAddresses& addresses, Clock::time_point deadline, int& failed) {
  std::vector<const addrinfo*> list;
  for (const addrinfo* a = addresses.list.get(); a != nullptr; a = a->ai_next) list.push_back(a);
  for (size_t left = list.size(); left > 0; --left) {
    addresses.first %= list.size();
    const addrinfo& address = *list[addresses.first];
    // One that nothing answers, of IPv6 for instance, must not take the time of the others.
    const auto now = Clock::now();
    const auto share = std::clamp<Clock::duration>((deadline - now) / static_cast<int64_t>(left),
                                                   kLeastAttempt, kMostAttempt);
    const auto until = std::min(deadline, now + share);
    Socket socket = new_socket(address);
    failed = try_connect(socket, address, until);
    if (failed == 0) {
      set_option(socket, IPPROTO_TCP, TCP_NODELAY);
      return socket;
    }
    // One that had little time at the end is the first of the next attempt.
    if (failed == ETIMEDOUT && until == deadline && until - now < kLeastAttempt) break;
    ++addresses.first;
  }
  return {};
}

// Asks for newer addresses; those that are known stay when no answer comes soon.
void ask_shortly(const std::string& host, int port, Clock::time_point deadline, KnownAddresses& addresses) {
  auto newer = look_up_until(host, port, std::min(deadline, Clock::now() + kMostOfAQuestion));
  if (newer.ok()) addresses.list = std::move(*newer);
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

Result<Socket> listen_at(const std::string& address, const PortRange& ports, bool loopback_only) {
  constexpr int kMostWaiting = 1024;
  if (loopback_only) {
    const auto list = look_up(address == kAnyAddress ? "0.0.0.0" : address, ports.first, AI_PASSIVE);
    if (!list.ok()) return invalid_argument(list.error().message());
    if (!is_loopback(*(*list)->ai_addr))
      return invalid_argument(
          fmt::format("the coordinator would listen at {}, which other machines reach, without a secret: set "
                      "OSTRO_JOB_SECRET, or use 127.0.0.1",
                      address));
  }
  ASSIGN_OR_RETURN(const int fd, open_listener(address, ports, kMostWaiting));
  return Socket(fd);
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

Result<Socket> connect_to(const std::string& host, int port, Clock::time_point deadline,
                          KnownAddresses* known, const std::string& what) {
  const std::string place = host_and_port(host, port);
  KnownAddresses none;
  KnownAddresses& addresses = known != nullptr ? *known : none;
  if (addresses.list) {
    ask_shortly(host, port, deadline, addresses);
  } else {
    ASSIGN_OR_RETURN(addresses.list,
                     look_up_late(host, port, fmt::format("the {} at {}", what, place), deadline));
  }
  Clock::time_point again = Clock::now() + kAskAgain;
  const Clock::time_point notice = Clock::now() + std::chrono::seconds(2);
  bool told = false;
  while (true) {
    int failed = 0;
    if (Socket socket = try_each(addresses, deadline, failed); socket.fd() >= 0) return socket;
    if (Clock::now() >= deadline)
      return io_error(fmt::format("no {} at {}: {}", what, place, std::strerror(failed)));
    // A worker may be started before its coordinator.
    if (Clock::now() >= notice && !std::exchange(told, true)) {
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(deadline - Clock::now());
      log_info(fmt::format("no {} at {} yet ({}): waiting for it, at most {} s more", what, place,
                           std::strerror(failed), seconds.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (Clock::now() < again) continue;
    // It may have moved: another one in its place has another address.
    ask_shortly(host, port, deadline, addresses);
    again = Clock::now() + kAskAgain;
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
