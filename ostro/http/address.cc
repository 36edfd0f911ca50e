#include "ostro/http/address.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <cstring>

#include "ostro/base/net/look_up.h"

namespace ostro::http {

bool Address::is_loopback() const { return ostro::is_loopback(reinterpret_cast<const sockaddr&>(socket)); }

bool Address::is_unix() const { return socket.ss_family == AF_UNIX; }

Result<Address> parse_address(const std::string& text) {
  ASSIGN_OR_RETURN(const HostPort place, parse_host_port(text));
  Address out;
  out.host = place.host, out.port = place.port;
  const auto found = look_up(out.host, out.port);
  if (!found.ok())
    return invalid_argument(
        fmt::format("{}: the host has no address ({}); an address is HOST:PORT, as "
                    "127.0.0.1:8080",
                    text, found.error().message()));
  std::memcpy(&out.socket, (*found)->ai_addr, (*found)->ai_addrlen);
  out.size = (*found)->ai_addrlen;
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

}  // namespace ostro::http
