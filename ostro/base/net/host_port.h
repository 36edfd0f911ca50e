// HostPort, PortRange: places in a network as texts: "10.0.0.1:4711", "[::1]:4711", and "29500-29999" for
// ports. Nothing is looked up. Pure functions.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  int port = 0;
};

// Reads "HOST:PORT" with a port from 0 to 65535; an IPv6 address stands in brackets. Error: kInvalidArgument,
// beginning with the text.
Result<HostPort> parse_host_port(const std::string& text);
// The same as text, with brackets around an IPv6 address.
std::string host_and_port(const std::string& host, int port);

// Ports `first` to `last`; {0, 0}: any one port that is free.
struct PortRange {
  int first = 0, last = 0;

  bool any() const { return first == 0; }
  int count() const { return last - first + 1; }
  bool operator==(const PortRange&) const = default;
};

// Reads "FIRST-LAST", or one port, from 1 to 65535. Error: kInvalidArgument, beginning with the text.
Result<PortRange> parse_ports(const std::string& text);
std::string ports_text(const PortRange& ports);

}  // namespace ostro
