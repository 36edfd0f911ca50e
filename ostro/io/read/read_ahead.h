// ReadAhead: reads ahead (prefetch) for storage where each request is slow, such as S3.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

// Memory that the blocks of many objects may use together. When it is used up, an object fetches small
// blocks, one at a time. Thread-safe.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(int64_t bytes) : left_(bytes) {}
  // A part of the budget. The destructor gives it back.
  class Share {
   public:
    Share(std::shared_ptr<ReadAheadBudget> budget, int64_t bytes);
    ~Share();
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;

   private:
    std::shared_ptr<ReadAheadBudget> budget_;
    int64_t bytes_;
  };
  int64_t left() const { return left_; }

 private:
  std::atomic<int64_t> left_;
};

struct ReadAheadOptions {
  int64_t first_block = 256 << 10;  // bytes; each block is twice as large as the one before ...
  int64_t max_block = 8 << 20;
  int64_t blocks = 3;                       // at most this many blocks are held or being fetched
  std::shared_ptr<ReadAheadBudget> budget;  // null: no common limit for several objects
};

// Reads an object of `size` bytes. Sequential reads (those that begin at 0, or where the one before ended)
// are served from blocks that background threads fetch in advance. Any other read is fetched directly, at
// most max_block bytes at a time. Thread-safe. Errors are those of Fetch. The destructor stops running
// fetches and waits for them.
class ReadAhead {
 public:
  // Fills `out` with bytes from `offset` on. Several threads call it at once.
  using Fetch = std::function<Status(int64_t offset, std::span<std::byte> out, std::stop_token stop)>;

  ReadAhead(int64_t size, Fetch fetch, const ReadAheadOptions& options = {});
  ~ReadAhead();

  // The range must lie within the object.
  Status read(int64_t offset, std::span<std::byte> out);

 private:
  struct Block {
    ReadAheadBudget::Share share;
    int64_t begin = 0;
    std::vector<std::byte> bytes;
    std::future<Status> done;
    int64_t end() const { return begin + static_cast<int64_t>(bytes.size()); }
  };
  Status read_directly(int64_t offset, std::span<std::byte> out);
  Status read_blocks(int64_t offset, std::span<std::byte> out);
  void fetch_ahead();

  const int64_t size_;
  const Fetch fetch_;
  const ReadAheadOptions options_;
  std::stop_source stop_;

  std::mutex mutex_;          // guards what follows
  int64_t expected_ = 0;      // where a sequential read would begin
  int64_t next_ = 0;          // where the block to fetch next begins ...
  int64_t block_ = 0;         // ... and its size in bytes
  std::deque<Block> blocks_;  // adjacent blocks; the last one ends at next_
};

}  // namespace ostro::io
