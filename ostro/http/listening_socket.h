// listening_socket: a socket that listens at an address, and the port that it got.
#pragma once

#include "ostro/base/error.h"
#include "ostro/http/address.h"

namespace ostro::http {

// A file descriptor, which the caller closes. Errors: the address is in use, or not of this machine. A Unix
// socket may be used by its owner and its group; one that a killed server left is replaced.
Result<int> listening_socket(const Address& address);
int port_of(int socket);  // 0: of a Unix socket

}  // namespace ostro::http
