// LruCache: a cache with least-recently-used eviction, shared by several owners so that one capacity limits
// all of them together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace ostro {

// Holds values by owner and number. When the sum of their costs exceeds the capacity, the least recently used
// values are removed. A removed value stays alive as long as a caller holds its pointer. Thread-safe.
template <typename T>
class LruCache {
 public:
  using Value = std::shared_ptr<const T>;

  // The values of one owner. The destructor removes them from the cache.
  class Part {
   public:
    explicit Part(std::shared_ptr<LruCache> cache) : cache_(std::move(cache)), owner_(cache_->new_owner()) {}
    Part(Part&&) noexcept = default;
    Part& operator=(Part&&) = delete;
    ~Part() {
      if (cache_ != nullptr) cache_->remove(owner_);
    }

    size_t capacity() const { return cache_->capacity_; }
    // The value, or null if it is not in the cache.
    Value find(int64_t number) const { return cache_->find({owner_, number}); }
    // Adds a value and returns it. If another thread has already added this number, returns that thread's
    // value.
    Value add(int64_t number, Value value, size_t cost = 1) const {
      return cache_->add({owner_, number}, std::move(value), cost);
    }

   private:
    std::shared_ptr<LruCache> cache_;
    int64_t owner_;
  };

  // The value that was added last always stays, even if it costs more than `capacity`.
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // The sum of the costs of all values.
  size_t cost() const {
    const std::lock_guard lock(mutex_);
    return cost_;
  }

 private:
  using Key = std::pair<int64_t, int64_t>;
  struct Hash {
    size_t operator()(const Key& key) const {
      return static_cast<size_t>(static_cast<uint64_t>(key.first) * 0x9e3779b97f4a7c15u ^
                                 static_cast<uint64_t>(key.second) * 0xc2b2ae3d27d4eb4fu);
    }
  };
  struct Entry {
    Key key;
    Value value;
    size_t cost;
  };
  using List = std::list<Entry>;

  int64_t new_owner() {
    const std::lock_guard lock(mutex_);
    return owners_++;
  }

  void remove(int64_t owner) {
    List dead;  // destroyed after the lock is released, because freeing may take long
    const std::lock_guard lock(mutex_);
    for (auto entry = recent_.begin(); entry != recent_.end();) {
      const auto next = std::next(entry);
      if (entry->key.first == owner) take_out(entry, dead);
      entry = next;
    }
  }

  Value find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, found->second);
    return found->second->value;
  }

  Value add(const Key& key, Value value, size_t cost) {
    List dead;
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->value;
    recent_.push_front({key, value, cost});
    by_key_[key] = recent_.begin();
    cost_ += cost;
    while (cost_ > capacity_ && recent_.size() > 1) take_out(std::prev(recent_.end()), dead);
    return value;
  }

  void take_out(typename List::iterator entry, List& dead) {
    cost_ -= entry->cost;
    by_key_.erase(entry->key);
    dead.splice(dead.end(), recent_, entry);
  }

  size_t capacity_;
  mutable std::mutex mutex_;  // guards what follows
  size_t cost_ = 0;
  int64_t owners_ = 0;
  List recent_;  // latest first
  std::unordered_map<Key, typename List::iterator, Hash> by_key_;
};

}  // namespace ostro
