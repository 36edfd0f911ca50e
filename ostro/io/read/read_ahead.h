// Reading ahead where a request costs more than its bytes.
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

// What the blocks of many objects may take together. One that has none left fetches small blocks, one at a
// time.
class ReadAheadBudget {
 public:
  explicit ReadAheadBudget(int64_t bytes) : left_(bytes) {}
  // Part of the budget, given back by its destructor.
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
  int64_t first_block = 256 << 10;  // bytes; blocks double up to ...
  int64_t max_block = 8 << 20;
  int64_t blocks = 3;                       // ... and so many at most are held or under way
  std::shared_ptr<ReadAheadBudget> budget;  // null: no bound over several objects
};

// Reads of an object of `size` bytes. Those that go on where the one before ended (or begin at 0) are served
// from blocks that threads of their own fetch beforehand; any other is one fetch of its own, at most
// max_block at a time. Thread-safe. The destructor stops fetches that are under way and waits for them.
class ReadAhead {
 public:
  // Fills `out` from `offset` on; called by several threads at once.
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
  int64_t expected_ = 0;      // where a read in order begins
  int64_t next_ = 0;          // the block to fetch next begins here ...
  int64_t block_ = 0;         // ... and has so many bytes
  std::deque<Block> blocks_;  // neighbours, the last ends at next_
};

}  // namespace ostro::io
