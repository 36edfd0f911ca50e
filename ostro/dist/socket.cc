#include "ostro/dist/socket.h"

// linux/tcp.h knows more of a connection than netinet/tcp.h; no file of this room can include that, too.
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "ostro/base/net/listen.h"
#include "ostro/base/net/look_up.h"

namespace ostro::dist {
namespace {

constexpr std::chrono::milliseconds kMostOfAQuestion{200};  // for the addresses of a name

void set_number(int fd, int level, int name, int value) {
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

Socket socket_for(const addrinfo& address) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  set_number(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

}  // namespace

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Listener> listen_at(const std::string& address, int backlog, const PortRange& ports) {
  ASSIGN_OR_RETURN(const int fd, open_listener(address, ports, backlog));
  Listener out{Socket(fd), "", ""};
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int failed = ::getnameinfo(reinterpret_cast<const sockaddr*>(&bound), size, host.data(), host.size(),
                                   port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return io_error(fmt::format("the address '{}': {}", address, ::gai_strerror(failed)));
  out.host = host.data(), out.port = port.data();
  return out;
}

Socket accept_from(const Listener& listener) {
  Socket socket(::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  set_number(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

Result<Begun> begin_connect(const std::string& host, const std::string& port, size_t which) {
  int number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0)
    return invalid_argument(fmt::format("the port '{}' of {} is none", port, host));
  ASSIGN_OR_RETURN(const AddressList list,
                   look_up_until(host, number, std::chrono::steady_clock::now() + kMostOfAQuestion));
  int failed = EADDRNOTAVAIL;
  size_t i = 0, count = 0;
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) ++count;
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next, ++i) {
    if (i < which) continue;
    Socket socket = socket_for(*address);
    if (socket.open() &&
        (::connect(socket.fd(), address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS))
      return Begun{std::move(socket), address->ai_next == nullptr ? 0 : i + 1, count};
    failed = errno;
  }
  return io_error(fmt::format("connecting to {}: {}", host_and_port(host, number), std::strerror(failed)));
}

int connect_error(const Socket& socket) {
  int failed = 0;
  socklen_t size = sizeof failed;
  ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &failed, &size);
  return failed;
}

// Two mechanisms of TCP: probes while nothing is on its way (a third of the time to the first, the rest for
// the answers), and a limit for what is on its way.
void break_when_silent(const Socket& socket, std::chrono::milliseconds limit) {
  constexpr int kProbes = 4;
  const auto ms = static_cast<int>(std::clamp<int64_t>(limit.count(), 1000, 1'000'000'000));
  const int fd = socket.fd();
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, std::clamp(ms / 3000, 1, 32'000));
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::clamp(ms * 2 / 3000 / kProbes, 1, 32'000));
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms);
}

int64_t bytes_moved(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
    return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received + info.tcpi_bytes_acked);
}

std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "an unknown address";
  return host.data();
}

}  // namespace ostro::dist
