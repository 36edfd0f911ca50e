#include "ostro/serve/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::serve {

// A product of integers, and what it is divided by, are exact, so the part is, too.
size_t share_of(size_t all, double percent) {
  return std::max<size_t>(static_cast<size_t>(static_cast<double>(all) * percent / 100), 1);
}

ApiError may_not_wait(Pushed pushed, size_t waiting, double key_share) {
  if (pushed == Pushed::kKeyFull)
    return {kTooMany, fmt::format("{} requests of this key wait already, which is its share of the {} that "
                                  "may wait (--key_share)",
                                  share_of(waiting, key_share), waiting)};
  return {kTooMany, fmt::format("{} requests wait already", waiting)};
}

ApiError waited_too_long(std::chrono::seconds limit) {
  return {kUnavailable,
          fmt::format("the request waited for {} seconds, which is the most here (--waiting_seconds); the "
                      "server is busy, ask again later",
                      limit.count()),
          "", kWaitLimit};
}

ApiError ran_too_long(std::chrono::seconds limit, size_t which, size_t count) {
  return {kUnavailable,
          fmt::format("the request ran for {} seconds, which is the most here (--running_seconds), and "
                      "answer {} of {} is not so far that it could end there: it has no token, or its prompt "
                      "was not read to its end; ask for fewer or shorter prompts, or a smaller \"n\"",
                      limit.count(), which + 1, count),
          "", kRunLimit};
}

}  // namespace ostro::serve
