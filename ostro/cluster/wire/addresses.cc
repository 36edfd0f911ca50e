#include "ostro/cluster/wire/addresses.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "ostro/base/host_name.h"
#include "ostro/base/net/look_up.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {
namespace {

constexpr int kAnyPort = 9;  // nothing is sent to it

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

std::string in_numbers(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  const int failed = getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

// Whether other machines reach an interface by this address: not one of loopback, or of IPv6 for its link
// only.
bool is_wide(const ifaddrs& interface, int family) {
  if (interface.ifa_addr == nullptr || interface.ifa_addr->sa_family != family ||
      (interface.ifa_flags & IFF_UP) == 0 || is_loopback(*interface.ifa_addr))
    return false;
  return family != AF_INET6 ||
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr)->sin6_addr);
}

}  // namespace

Result<std::string> address_towards(const std::string& host, std::chrono::milliseconds patience) {
  ASSIGN_OR_RETURN(const AddressList list, look_up_late(host, kAnyPort, host, deadline_after(patience)));
  int failed = 0;
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
  if (const auto list = look_up(name, kAnyPort); list.ok())
    for (const addrinfo* a = list->get(); a != nullptr; a = a->ai_next)
      if (!is_loopback(*a->ai_addr)) return in_numbers(a->ai_addr, a->ai_addrlen);
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return io_error(fmt::format("no interfaces: {}", std::strerror(errno)));
  const std::unique_ptr<ifaddrs, FreeInterfaces> free(all);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next)
      if (is_wide(*i, family))
        return in_numbers(i->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return not_found(
      fmt::format("no address of {} but those of loopback, which other machines cannot reach", name));
}

}  // namespace ostro::cluster
