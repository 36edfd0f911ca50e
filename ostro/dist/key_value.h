// KeyValue: small values that all workers of a job share, for their rendezvous.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::dist {

// A key of a planned epoch, set by its leader when all members are prepared: they may connect.
inline constexpr const char* kAllPreparedKey = "go";

// Thread-safe.
class KeyValue {
 public:
  virtual ~KeyValue() = default;
  virtual Status set(const std::string& key, std::string_view value) = 0;
  // Waits until the key is set. Errors: kBusy after `timeout`; kIo when the store is gone.
  virtual Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) = 0;
  // Waits until the keys `group`0 to `group`(count - 1) are set; returns their values in this order. `group`
  // ends with a slash. Errors: as of get(). A store that is not in this process answers with one message.
  virtual Result<std::vector<std::string>> get_all(const std::string& group, int64_t count,
                                                   std::chrono::milliseconds timeout) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    std::vector<std::string> values;
    for (int64_t i = 0; i < count; ++i) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      ASSIGN_OR_RETURN(values.emplace_back(),
                       get(group + std::to_string(i), std::max(left, std::chrono::milliseconds(0))));
    }
    return values;
  }
};

}  // namespace ostro::dist
