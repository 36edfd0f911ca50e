// look_up, look_up_until, look_up_late: the addresses that a host's name stands for.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>

#include "ostro/base/error.h"

namespace ostro {

using AddressList = std::shared_ptr<const addrinfo>;  // never empty

// The addresses of a host, for TCP at this port (0 to 65535). `flags`: those of getaddrinfo. It asks name
// servers, which takes as long as the system's resolver waits for them. Errors: kNotFound for a name that has
// no address, or of which no server answers, which may be otherwise later; kInvalidArgument for a text that
// never has one, such as 256.1.1.1, and for another port.
Result<AddressList> look_up(const std::string& host, int port, int flags = 0);

// The same, but it waits no longer than until the deadline: then the error is kNotFound, and the system's
// resolver, which cannot be interrupted, goes on in a thread of its own. What it finds is the answer to the
// next call for the same place. Thread-safe.
Result<AddressList> look_up_until(const std::string& host, int port,
                                  std::chrono::steady_clock::time_point deadline);

// The same, asked again and again, with pauses that grow from a tenth of a second to two seconds, while the
// name has no address yet: a service that is being set up, a name server that does not answer. After two
// seconds the log says so, once; `what` names what is waited for. Error: kIo at the deadline.
Result<AddressList> look_up_late(const std::string& host, int port, const std::string& what,
                                 std::chrono::steady_clock::time_point deadline);

// Only programs of this machine reach such an address.
bool is_loopback(const sockaddr& address);

}  // namespace ostro
