// free_ports: ports of 127.0.0.1 for tests that need given ones.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <vector>

#include "ostro/base/net/listen.h"

namespace ostro {

// `count` ports in a row that were free a moment ago, and that the system gives to no outgoing connection by
// default; other ones at each call. Not thread-safe.
inline PortRange free_ports(int count) {
  static int next = 21'000 + static_cast<int>(::getpid()) % 8'000;
  for (;; next += count) {
    REQUIRE(next < 32'000);
    std::vector<int> open;
    for (int port = next; port < next + count; ++port)
      if (const auto fd = open_listener("127.0.0.1", {port, port}, 1); fd.ok()) open.push_back(*fd);
    for (const int fd : open) ::close(fd);
    if (static_cast<int>(open.size()) < count) continue;
    next += count;
    return {next - count, next - 1};
  }
}

}  // namespace ostro
