// KeyTurns: which of the keys that wait for something is next: they take turns.
//
// A key that begins to wait goes behind all that wait. One that had its turn and still waits goes there, too.
// So of K keys that wait, each comes after at most K - 1 turns of others, however much these ask for. A
// value; one thread at a time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace ostro::serve {

class KeyTurns {
 public:
  // The keys that wait now. Those that did not wait before go behind the others, in this order; a key may be
  // named several times. Returns all in the order of their turns.
  const std::vector<std::string>& update(const std::vector<std::string>& waiting) {
    const auto has = [](const std::vector<std::string>& keys, const std::string& key) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    std::erase_if(order_, [&](const std::string& key) { return !has(waiting, key); });
    for (const std::string& key : waiting)
      if (!has(order_, key)) order_.push_back(key);
    return order_;
  }
  // This key had its turn.
  void took(const std::string& key) {
    const auto found = std::find(order_.begin(), order_.end(), key);
    if (found != order_.end()) std::rotate(found, found + 1, order_.end());
  }

 private:
  std::vector<std::string> order_;
};

}  // namespace ostro::serve
