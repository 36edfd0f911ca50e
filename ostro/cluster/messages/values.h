// Values: the keys and values of one epoch or of the job, and the members that wait for a key. Private to the
// room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

// A member's get() or get_all() that has no answer yet.
struct Waiter {
  int64_t member = 0;
  int64_t request = 0;
  auto operator<=>(const Waiter&) const = default;
};

// A waiter and the value that it gets.
struct Answer {
  Waiter waiter;
  std::string value;
};

// Keys that end with a slash and a number from 0 on, without leading zeros, are also members of a *group*,
// which is the part up to and with the slash. Not thread-safe.
class Values {
 public:
  Values();
  // Sets or replaces a key. Errors: kUnsupported when keys and values would take more than 64 MiB: the store
  // is meant for addresses, not for data.
  Status set(const std::string& key, std::string value);
  // Null when the key is not set.
  const std::string* find(const std::string& key) const;
  // The values of the keys 0 to count - 1 of a group, as packed() writes them; null while one of them is not
  // set. It is valid until the next call. All members of an epoch ask for the same keys, so it is kept until
  // a key of the group is set.
  const std::string* find_all(const std::string& group, int64_t count);
  // Adds a waiter for a key, or for the keys 0 to count - 1 of a group. Errors: kUnsupported when this member
  // waits for 1024 answers already.
  Status wait(Waiter waiter, const std::string& key);
  Status wait_all(Waiter waiter, const std::string& group, int64_t count);
  // Removes the waiters that have an answer now that `key` was set; those of the key come first, then those
  // of its group, oldest member first.
  std::vector<Answer> take_answers(const std::string& key);
  // Removes a waiter; does nothing when it does not wait.
  void cancel(Waiter waiter);

 private:
  // What a member waits for; count < 0: a key, else the first `count` keys of a group.
  struct Wanted {
    std::string name;
    int64_t count = -1;
  };
  struct Group {
    std::set<int64_t> numbers;  // of the keys that are set
    int64_t whole = 0;          // the keys 0 to whole - 1 are set
    std::string all;            // the last answer of find_all, about the first `count` keys
    int64_t count = -1;         // -1: there is none
  };
  Status add(Waiter waiter, Wanted wanted);

  std::map<std::string, std::string> values_;
  const std::string none_;  // no values, as packed() writes them
  std::map<std::string, Group, std::less<>> groups_;
  size_t bytes_ = 0;
  std::map<Waiter, Wanted> waits_;
  std::map<std::string, std::set<Waiter>> by_key_, by_group_;
};

// Values as one text, and the text as values again; nothing when it is not such a text.
std::string packed(const std::vector<std::string_view>& values);
std::optional<std::vector<std::string>> unpacked(std::string_view text);

}  // namespace ostro::cluster
