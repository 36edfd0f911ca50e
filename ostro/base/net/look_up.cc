#include "ostro/base/net/look_up.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "ostro/base/log.h"

namespace ostro {
namespace {

using LookUpClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{100}, kMostPause{2000};
constexpr std::chrono::seconds kUntilNotice{2};

// Whether the text can be a name: not an address in numbers, or something close to one.
bool is_name(const std::string& host) {
  return !host.empty() && host.find_first_not_of("0123456789.") != std::string::npos &&
         host.find_first_of(": \t") == std::string::npos;
}

bool may_come(int failed) {
  return failed == EAI_AGAIN || failed == EAI_NONAME || failed == EAI_FAIL || failed == EAI_SYSTEM ||
         failed == EAI_NODATA;
}

}  // namespace

Result<AddressList> look_up(const std::string& host, int port, int flags) {
  if (port < 0 || port > 65535) return invalid_argument(fmt::format("{} is no port (0 to 65535)", port));
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (failed == 0) return AddressList(list);
  const int error = errno;
  const std::string message = fmt::format(
      "host '{}': {}", host, failed == EAI_SYSTEM ? std::strerror(error) : ::gai_strerror(failed));
  const bool later = may_come(failed) && is_name(host) && (flags & AI_NUMERICHOST) == 0;
  return later ? not_found(message) : invalid_argument(message);
}

Result<AddressList> look_up_late(const std::string& host, int port, const std::string& what,
                                 LookUpClock::time_point deadline) {
  const auto notice = LookUpClock::now() + kUntilNotice;
  bool told = false;
  auto pause = kFirstPause;
  for (int asked = 1;; ++asked) {
    auto list = look_up(host, port);
    if (list.ok() || list.error().code() != ErrorCode::kNotFound) return list;
    const auto now = LookUpClock::now();
    if (now >= deadline)
      return io_error(
          fmt::format("{}: {}; asked {} time{}", what, list.error().message(), asked, asked == 1 ? "" : "s"));
    if (now >= notice && !std::exchange(told, true))
      log_info(fmt::format("{}: the name has no address yet ({}): waiting for it, at most {} s more", what,
                           list.error().message(),
                           std::chrono::ceil<std::chrono::seconds>(deadline - now).count()));
    std::this_thread::sleep_until(std::min(deadline, now + pause));
    pause = std::min(kMostPause, pause * 2);
  }
}

bool is_loopback(const sockaddr& address) {
  constexpr uint32_t kLoopbackNet = 127;
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopbackNet;
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr) != 0;
}

}  // namespace ostro
