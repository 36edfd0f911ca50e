#include "ostro/dist/meet.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>

#include <fmt/format.h>

namespace ostro::dist {

std::chrono::milliseconds left_until(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Deadline::clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

// Without this Gloo's limit for one connection, which cannot be set for all of them together, would also have
// to cover the time that the slowest worker needs to start.
Status meet(int64_t rank, int64_t size, KeyValue& store, const std::string& prefix, Deadline deadline) {
  RETURN_IF_ERROR(store.set(fmt::format("{}here/{}", prefix, rank), std::to_string(size)));
  for (int64_t peer = 0; peer < size; ++peer) {
    const auto theirs = store.get(fmt::format("{}here/{}", prefix, peer), left_until(deadline));
    if (!theirs.ok()) return theirs.error().with_context(fmt::format("waiting for worker {}", peer));
    if (*theirs != std::to_string(size))
      return invalid_argument(
          fmt::format("worker {} is one of {} workers, worker {} of {}", peer, *theirs, rank, size));
  }
  return Status();
}

// Gloo itself crashes over a name that it cannot resolve.
Status check_address(const std::string& bind) {
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(bind.c_str(), nullptr, nullptr, &found);
  if (failed != 0) return invalid_argument(fmt::format("the address '{}': {}", bind, ::gai_strerror(failed)));
  ::freeaddrinfo(found);
  return Status();
}

}  // namespace ostro::dist
