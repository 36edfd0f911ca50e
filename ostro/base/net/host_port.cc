#include "ostro/base/net/host_port.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace ostro {
namespace {

constexpr int kLastPort = 65535;

// The number that the whole text is, if it is one from `least` to kLastPort.
std::optional<int> port_in(std::string_view text, int least) {
  int port = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port < least || port > kLastPort)
    return std::nullopt;
  return port;
}

}  // namespace

Result<HostPort> parse_host_port(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return invalid_argument(fmt::format("{}: {}; an address is HOST:PORT, as 127.0.0.1:8080", text, why));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.ends_with(']')) return wrong("no port");
  HostPort out;
  out.host = text.substr(0, colon);
  const bool bracketed = out.host.starts_with('[') && out.host.ends_with(']');
  if (bracketed) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty()) return wrong("no host");
  if (!bracketed && out.host.find(':') != std::string::npos)
    return wrong("an IPv6 address stands in brackets");
  const auto port = port_in(std::string_view(text).substr(colon + 1), 0);
  if (!port) return wrong("the port is not a number from 0 to 65535");
  out.port = *port;
  return out;
}

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

Result<PortRange> parse_ports(const std::string& text) {
  const std::string_view all = text;
  const size_t dash = all.find('-');
  const auto first = port_in(all.substr(0, dash), 1);
  const auto last = dash == std::string::npos ? first : port_in(all.substr(dash + 1), 1);
  if (!first || !last || *first > *last)
    return invalid_argument(
        fmt::format("{}: is no range of ports; it is FIRST-LAST, or one port, from 1 to {}, as 29500-29999",
                    text, kLastPort));
  return PortRange{*first, *last};
}

std::string ports_text(const PortRange& ports) {
  return ports.first == ports.last ? std::to_string(ports.first)
                                   : fmt::format("{}-{}", ports.first, ports.last);
}

}  // namespace ostro
