// Values: the keys and values of one epoch or of the job, and the members that wait for a key. Private to the
// room.
#pragma once

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

// Not thread-safe.
class Values {
 public:
  // Sets or replaces a key. Errors: kUnsupported when keys and values would take more than 64 MiB: the store
  // is meant for addresses, not for data.
  Status set(const std::string& key, std::string value);
  // Null when the key is not set.
  const std::string* find(const std::string& key) const;
  // Adds a waiter for a key. Errors: kUnsupported when this member waits for 1024 keys already.
  Status wait(Waiter waiter, const std::string& key);
  // Removes and returns the waiters for the key, oldest member first.
  std::vector<Waiter> take_waiters(const std::string& key);
  // Removes a waiter; does nothing when it does not wait.
  void cancel(Waiter waiter);

 private:
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;
  std::map<Waiter, std::string> waits_;
  std::map<std::string, std::set<Waiter>> by_key_;
};

}  // namespace ostro::cluster
