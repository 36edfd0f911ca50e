// open_listener: a socket that listens at the first free port of a range.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/base/net/host_port.h"

namespace ostro {

// As a host of open_listener: all addresses of this machine, of IPv6 and IPv4 where it has both.
inline constexpr const char* kAnyAddress = "any";
// Whether a host means all addresses of a machine, so that others cannot be told it.
bool is_any_address(const std::string& host);

// Returns a descriptor that does not block and that started programs do not inherit. It belongs to the
// caller. `host`: an address of this machine in numbers, its name, or kAnyAddress; "::" takes IPv4, too.
// `backlog`: how many connections may wait. Connections of a process that has just ended do not keep its port
// from the next one. Errors: kInvalidArgument for a host that is not this machine's; kBusy when all ports are
// in use; kIo.
Result<int> open_listener(const std::string& host, const PortRange& ports, int backlog);

}  // namespace ostro
