// Reading ahead where a request costs more than its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <stop_token>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

struct ReadAheadOptions {
  int64_t first_block = 256 << 10;  // bytes; blocks double up to ...
  int64_t max_block = 8 << 20;
  int64_t blocks = 3;  // ... and so many at most are held or under way
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
