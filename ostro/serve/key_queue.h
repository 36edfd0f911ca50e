// KeyQueue: what waits for a thread, each item with a key: up to a number of items in all, and up to a share
// of one key. The first item of a key is always taken, so that others cannot lock it out. Within a key the
// order is that of arrival; keys take turns (KeyTurns).
//
// The key "" has no share: it is that of a server whose requests are all of one owner. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/key_turns.h"

namespace ostro::serve {

// What became of an item: it waits; no more may wait; no more of this key may wait.
enum class Pushed : uint8_t { kTaken, kFull, kKeyFull };

template <typename T>
class KeyQueue {
 public:
  KeyQueue(size_t most, size_t most_of_key) : most_(most), most_of_key_(most_of_key) {}

  // Where there is no room, it drops the items for which `is_stale` is true first. A queue that is closed is
  // full.
  template <typename IsStale>
  Pushed push(std::string key, T item, IsStale&& is_stale) {
    {
      const std::lock_guard lock(mutex_);
      if (refusal(key) != Pushed::kTaken)
        std::erase_if(items_, [&](const Entry& entry) { return is_stale(entry.second); });
      if (const Pushed refused = refusal(key); refused != Pushed::kTaken) return refused;
      items_.emplace_back(std::move(key), std::move(item));
    }
    changed_.notify_one();
    return Pushed::kTaken;
  }
  size_t size(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    return count(key);
  }
  // Of the items that wait, in the order of arrival.
  std::vector<std::string> keys() const {
    const std::lock_guard lock(mutex_);
    return keys_of_items();
  }
  // Waits until something is there. False: the queue is closed.
  bool wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    return !closed_;
  }
  // Waits for the next one: the first of the key whose turn it is. Nothing when the queue is closed.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (closed_) return std::nullopt;
    const std::string next = turns_.update(keys_of_items()).front();
    turns_.took(next);
    return first_of(next, [](const T&) { return true; });
  }
  // The first of this key for which `is_wanted` is true, if one waits.
  template <typename IsWanted>
  std::optional<T> try_pop(const std::string& key, IsWanted&& is_wanted) {
    const std::lock_guard lock(mutex_);
    return closed_ ? std::nullopt : first_of(key, is_wanted);
  }
  std::optional<T> try_pop(const std::string& key) {
    return try_pop(key, [](const T&) { return true; });
  }
  // Removes and returns the items for which `is_late` is true.
  template <typename IsLate>
  std::vector<T> take_late(IsLate&& is_late) {
    const std::lock_guard lock(mutex_);
    std::vector<T> out;
    for (Entry& entry : items_)
      if (is_late(entry.second)) out.push_back(entry.second);
    std::erase_if(items_, [&](const Entry& entry) { return is_late(entry.second); });
    return out;
  }
  // wait() and pop() end. Returns what waited.
  std::vector<T> close() {
    std::vector<T> left;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      for (Entry& entry : items_) left.push_back(std::move(entry.second));
      items_.clear();
    }
    changed_.notify_all();
    return left;
  }

 private:
  using Entry = std::pair<std::string, T>;

  // The rest is called with the lock.
  size_t count(const std::string& key) const {
    return static_cast<size_t>(
        std::count_if(items_.begin(), items_.end(), [&](const Entry& entry) { return entry.first == key; }));
  }
  Pushed refusal(const std::string& key) const {
    const size_t of_key = key.empty() ? 0 : count(key);
    if (!closed_ && !key.empty() && of_key == 0) return Pushed::kTaken;
    if (closed_ || items_.size() >= most_) return Pushed::kFull;
    return of_key >= most_of_key_ ? Pushed::kKeyFull : Pushed::kTaken;
  }
  std::vector<std::string> keys_of_items() const {
    std::vector<std::string> out;
    for (const Entry& entry : items_) out.push_back(entry.first);
    return out;
  }
  template <typename IsWanted>
  std::optional<T> first_of(const std::string& key, IsWanted&& is_wanted) {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const Entry& entry) {
      return entry.first == key && is_wanted(entry.second);
    });
    if (found == items_.end()) return std::nullopt;
    std::optional<T> out(std::move(found->second));
    items_.erase(found);
    return out;
  }

  const size_t most_, most_of_key_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> items_;
  KeyTurns turns_;
  bool closed_ = false;
};

}  // namespace ostro::serve
