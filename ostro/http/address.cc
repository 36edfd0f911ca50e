#include "ostro/http/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

namespace ostro::http {

bool Address::is_loopback() const {
  if (socket.ss_family == AF_INET) {
    constexpr uint32_t kLoopbackNet = 127;
    return ntohl(reinterpret_cast<const sockaddr_in&>(socket).sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  return socket.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(socket).sin6_addr) != 0;
}

bool Address::is_unix() const { return socket.ss_family == AF_UNIX; }

Result<Address> parse_address(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return invalid_argument(fmt::format("{}: {}; an address is HOST:PORT, as 127.0.0.1:8080", text, why));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong("no port");
  Address out;
  out.host = text.substr(0, colon);
  const bool bracketed = out.host.starts_with('[') && out.host.ends_with(']');
  if (bracketed) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty()) return wrong("no host");
  if (!bracketed && out.host.find(':') != std::string::npos)
    return wrong("an IPv6 address stands in brackets");
  constexpr int kLastPort = 65535;
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  if (const auto read = std::from_chars(begin, end, out.port);
      read.ec != std::errc() || read.ptr != end || out.port < 0 || out.port > kLastPort)
    return wrong("the port is not a number from 0 to 65535");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(out.host.c_str(), std::to_string(out.port).c_str(), &hints, &found);
      code != 0)
    return wrong(fmt::format("the host has no address ({})", ::gai_strerror(code)));
  std::memcpy(&out.socket, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return out;
}

Result<Address> parse_address_or_path(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  if (!text.starts_with(kUnix)) return parse_address(text);
  Address out;
  out.host = text.substr(kUnix.size());
  auto& name = reinterpret_cast<sockaddr_un&>(out.socket);
  if (out.host.empty() || out.host.size() >= sizeof name.sun_path)
    return invalid_argument(fmt::format("{}: the path of a Unix socket has 1 to {} bytes, this one has {}",
                                        text, sizeof name.sun_path - 1, out.host.size()));
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, out.host.c_str(), out.host.size() + 1);
  out.size = sizeof name;
  return out;
}

std::string address_text(const Address& address, int port) {
  return address.is_unix() ? "unix:" + address.host : host_and_port(address.host, port);
}

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

}  // namespace ostro::http
