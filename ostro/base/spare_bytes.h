// SpareBytes: a small pool of byte buffers for reuse.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace ostro {

// Keeps up to two buffers for code that fills buffers again and again. Without it every buffer would need
// fresh pages from the kernel, which cost as much as filling them. Thread-safe.
class SpareBytes {
 public:
  // Returns a buffer of any size with any content; the caller owns it.
  std::vector<std::byte> take() {
    const std::lock_guard lock(mutex_);
    if (list_.empty()) return {};
    std::vector<std::byte> bytes = std::move(list_.back());
    list_.pop_back();
    return bytes;
  }
  // Takes a buffer back; frees it if the pool is full.
  void give(std::vector<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (list_.size() < 2) list_.push_back(std::move(bytes));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> list_;
};

}  // namespace ostro
