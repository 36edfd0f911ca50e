#include "ostro/cluster/wire/addresses.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "ostro/base/host_name.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {
namespace {

struct FreeFound {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using Found = std::unique_ptr<addrinfo, FreeFound>;

std::string in_numbers(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  const int failed = getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

bool on_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

Found look_up(const std::string& host, int* failed) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  *failed = getaddrinfo(host.c_str(), "9", &wanted, &list);  // any port: nothing is sent
  return Found(*failed == 0 ? list : nullptr);
}

}  // namespace

Result<std::string> address_towards(const std::string& host) {
  int failed = 0;
  const Found list = look_up(host, &failed);
  if (failed != 0) return invalid_argument(fmt::format("host '{}': {}", host, gai_strerror(failed)));
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    const Socket socket(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (socket.fd() >= 0 && ::connect(socket.fd(), a->ai_addr, a->ai_addrlen) == 0 &&
        ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
      return in_numbers(reinterpret_cast<const sockaddr*>(&own), size);
    failed = errno;
  }
  return io_error(fmt::format("no route to {}: {}", host, std::strerror(failed)));
}

Result<std::string> address_of_this_machine() {
  const std::string name = host_name();
  int failed = 0;
  const Found list = look_up(name, &failed);
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next)
    if (!on_loopback(a->ai_addr)) return in_numbers(a->ai_addr, a->ai_addrlen);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return io_error(fmt::format("no interfaces: {}", std::strerror(errno)));
  const std::unique_ptr<ifaddrs, FreeFound> free(all);
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) != 0 &&
        !on_loopback(i->ifa_addr))
      return in_numbers(i->ifa_addr, sizeof(sockaddr_in));
  return not_found(
      fmt::format("no address of {} but those of loopback, which other machines cannot reach", name));
}

}  // namespace ostro::cluster
