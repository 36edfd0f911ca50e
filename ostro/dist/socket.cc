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
#include <cstddef>
#include <cstring>
#include <memory>

namespace ostro::dist {
namespace {

struct FreeAddressList {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddressList>;

Result<AddressList> resolve_address(const std::string& host, const std::string& port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &list);
  if (failed != 0) return invalid_argument(fmt::format("the address '{}': {}", host, ::gai_strerror(failed)));
  return AddressList(list);
}

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

Result<Listener> listen_at(const std::string& address, int backlog) {
  ASSIGN_OR_RETURN(const AddressList list, resolve_address(address, "0", AI_PASSIVE));
  Listener out{socket_for(*list), "", ""};
  if (!out.socket.open() || ::bind(out.socket.fd(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(out.socket.fd(), backlog) != 0) {
    const int failed = errno;
    const std::string message = fmt::format("cannot listen at {}: {}", address, std::strerror(failed));
    return failed == EADDRNOTAVAIL ? invalid_argument(message) : io_error(message);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(out.socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size);
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

Result<Socket> begin_connect(const std::string& host, const std::string& port) {
  ASSIGN_OR_RETURN(const AddressList list, resolve_address(host, port, AI_NUMERICHOST));
  Socket socket = socket_for(*list);
  if (socket.open() && (::connect(socket.fd(), list->ai_addr, list->ai_addrlen) == 0 || errno == EINPROGRESS))
    return socket;
  return io_error(fmt::format("connecting to {}:{}: {}", host, port, std::strerror(errno)));
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
