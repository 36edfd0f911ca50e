#include "ostro/base/net/listen.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ostro/base/net/look_up.h"

namespace ostro {
namespace {

constexpr const char* kAnyOfBoth = "::";
constexpr const char* kAnyOfFour = "0.0.0.0";

void set_port(sockaddr_storage& address, int port) {
  const in_port_t number = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = number;
  else
    reinterpret_cast<sockaddr_in&>(address).sin_port = number;
}

// The descriptor, or the system's number of the error, negative.
int listen_at_port(const addrinfo& at, int port, int backlog) {
  const int fd = ::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const int on = 1, off = 0;
  const auto reuse_address = [&] { (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); };
  if (port != 0) reuse_address();
  if (at.ai_family == AF_INET6) (void)::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_storage address{};
  std::memcpy(&address, at.ai_addr, at.ai_addrlen);
  set_port(address, port);
  int failed = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), at.ai_addrlen) == 0 ? 0 : errno;
  // A port that the system chooses: earlier, two processes could be given the same one. Connections inherit
  // it, so that those of a process that has ended do not keep the port from one that is told to use it.
  if (port == 0) reuse_address();
  // Two that bind to a given port at the same time may both succeed; then one of them cannot listen.
  if (failed == 0 && ::listen(fd, backlog) != 0) failed = errno;
  if (failed == 0) return fd;
  ::close(fd);
  return -failed;
}

Error none_free(const std::string& host, const PortRange& ports) {
  const std::string in_use = std::strerror(EADDRINUSE);
  if (ports.any())
    return busy(fmt::format("cannot listen at {}: {}; no port of net.ipv4.ip_local_port_range is free", host,
                            in_use));
  if (ports.count() == 1)
    return busy(fmt::format("cannot listen at {}: {}; choose another port, or 0 for any",
                            host_and_port(host, ports.first), in_use));
  return busy(fmt::format(
      "cannot listen at {}: all {} ports of {} are in use (`ss -ltnp` says by which processes); name a range "
      "with a port for each process that listens here",
      host, ports.count(), ports_text(ports)));
}

}  // namespace

bool is_any_address(const std::string& host) {
  if (host == kAnyAddress) return true;
  const auto numbers = look_up(host, 0, AI_NUMERICHOST);  // "0" and "::0" are written otherwise
  if (!numbers.ok()) return false;
  const sockaddr& address = *(*numbers)->ai_addr;
  if (address.sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  in6_addr six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&six)) six.s6_addr[10] = six.s6_addr[11] = 0;
  return IN6_IS_ADDR_UNSPECIFIED(&six) != 0;
}

Result<int> open_listener(const std::string& host, const PortRange& ports, int backlog) {
  if (host == kAnyAddress) {
    auto both = open_listener(kAnyOfBoth, ports, backlog);
    if (both.ok() || both.error().code() == ErrorCode::kBusy) return both;
    return open_listener(kAnyOfFour, ports, backlog);  // IPv6 is switched off
  }
  const auto list = look_up(host, ports.first, AI_PASSIVE);
  if (!list.ok()) return invalid_argument(list.error().message());
  for (int port = ports.first; port <= ports.last; ++port) {
    const int fd = listen_at_port(**list, port, backlog);
    if (fd >= 0) return fd;
    if (fd == -EADDRINUSE) continue;
    const std::string message = fmt::format("cannot listen at {}: {}",
                                            port == 0 ? host : host_and_port(host, port), std::strerror(-fd));
    return fd == -EADDRNOTAVAIL ? invalid_argument(message) : io_error(message);
  }
  return none_free(host, ports);
}

}  // namespace ostro
