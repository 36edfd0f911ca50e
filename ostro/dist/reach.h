// Reach: how the other workers of a group reach this one: where it listens, what they are told, and whether
// connections go through a relay.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/net/host_port.h"
#include "ostro/dist/relay.h"
#include "ostro/dist/socket.h"

namespace ostro::dist {

// A host that leads to this one: a machine whose container runtime publishes ports, a load balancer. With
// `ports`, the n-th of them leads to the n-th port at which this worker may listen; without, each leads to
// the port of the same number.
struct AdvertisedHost {
  std::string host;
  std::optional<PortRange> ports;
};

// Reads "HOST", "HOST:PORT" or "HOST:FIRST-LAST"; an IPv6 address with ports stands in brackets. Errors:
// kInvalidArgument, beginning with the text.
Result<AdvertisedHost> parse_advertised(const std::string& text);

// Which connections go through the relay.
enum class RelayUse {
  kNever,   // those with workers that ask for it
  kAuto,    // also those with workers that cannot be reached
  kAlways,  // all of this worker, which does not listen
};

struct Reach {
  std::string bind = "127.0.0.1";  // an address of this host, or kAnyAddress with `advertised`
  PortRange ports;                 // at which it may listen; {}: any
  std::optional<AdvertisedHost> advertised;
  Relay* relay = nullptr;  // null: none can be used
  RelayUse use = RelayUse::kNever;
  // How long a direct connection may take before another way is tried; at most a quarter of all the time.
  std::chrono::milliseconds patience{5000};
};

// Checks that these fit together, and that this process can listen so, if it is to listen. Errors:
// kInvalidArgument; those of open_listener.
Status check_reach(const Reach& reach);

// Listens; the listener has the host and port that others are told. Errors: those of check_reach.
Result<Listener> listen_at(const Reach& reach, int backlog);

}  // namespace ostro::dist
