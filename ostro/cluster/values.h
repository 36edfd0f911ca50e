// The keys of one epoch, and who waits for which.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

// A member's get() that has no answer yet.
struct Waiter {
  int64_t member = 0;
  int64_t request = 0;
  auto operator<=>(const Waiter&) const = default;
};

class Values {
 public:
  // Errors: kUnsupported when keys and values would take more than 64 MiB: it is meant for addresses, not for
  // data.
  Status set(const std::string& key, std::string value);
  // Null when the key is not set.
  const std::string* find(const std::string& key) const;
  // Errors: kUnsupported when this member waits for 1024 keys already.
  Status wait(Waiter waiter, const std::string& key);
  // Those who waited for the key, by age of the member; they do so no longer.
  std::vector<Waiter> take_waiters(const std::string& key);
  void cancel(Waiter waiter);
  void clear();

 private:
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
  std::map<Waiter, std::string> waits_;
  std::map<std::string, std::set<Waiter>> by_key_;
};

}  // namespace ostro::cluster
