// Address: where a server listens: "127.0.0.1:8080", "[::1]:8080", "localhost:0", "0.0.0.0:8080"; or a Unix
// socket, "unix:/run/ostro/socket".
#pragma once

#include <sys/socket.h>

#include <string>

#include "ostro/base/error.h"
#include "ostro/base/net/host_port.h"

namespace ostro::http {

struct Address {
  std::string host;  // as it was given, without brackets; of a Unix socket its path
  int port = 0;      // 0: one that is free
  sockaddr_storage socket{};
  socklen_t size = 0;

  bool is_loopback() const;  // only programs of this machine reach it, browsers among them
  bool is_unix() const;      // a socket in the file system, which no browser reaches
};

// Names are looked up, and the first address counts. Errors: no port, or a host without an address.
Result<Address> parse_address(const std::string& text);

// The same, and "unix:PATH". Errors: also a path that is empty or longer than a socket's may be.
Result<Address> parse_address_or_path(const std::string& text);

// The address as it was given; `port`: the one that it got.
std::string address_text(const Address& address, int port);

}  // namespace ostro::http
