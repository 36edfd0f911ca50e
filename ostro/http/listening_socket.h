// listening_socket: a socket that listens at an address, and the port that it got.
#pragma once

#include "ostro/base/error.h"
#include "ostro/http/address.h"

namespace ostro::http {

// A file descriptor, which the caller closes. Errors: the address is in use, or not of this machine.
Result<int> listening_socket(const Address& address);
int port_of(int socket);

}  // namespace ostro::http
