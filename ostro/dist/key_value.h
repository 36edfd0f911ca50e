// KeyValue: small values that all workers of a job share, for their rendezvous.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

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
};

}  // namespace ostro::dist
