// BoundedQueue: what waits for a thread, up to a number. Thread-safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace ostro::serve {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t most) : most_(most) {}

  // False: it is full or closed. When it is full, what `is_stale` says of is dropped first.
  template <typename IsStale>
  bool push(T item, IsStale&& is_stale) {
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= most_) std::erase_if(items_, is_stale);
      if (closed_ || items_.size() >= most_) return false;
      items_.push_back(std::move(item));
    }
    changed_.notify_one();
    return true;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  // Waits for the next one. Nothing when the queue is closed.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (closed_) return std::nullopt;
    std::optional<T> out(std::move(items_.front()));
    items_.pop_front();
    return out;
  }
  // The next one, if one waits.
  std::optional<T> try_pop() {
    const std::lock_guard lock(mutex_);
    if (closed_ || items_.empty()) return std::nullopt;
    std::optional<T> out(std::move(items_.front()));
    items_.pop_front();
    return out;
  }
  // Every pop() ends. Returns what waited.
  std::deque<T> close() {
    std::deque<T> left;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      left.swap(items_);
    }
    changed_.notify_all();
    return left;
  }

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace ostro::serve
