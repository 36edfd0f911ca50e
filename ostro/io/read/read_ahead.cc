#include "ostro/io/read/read_ahead.h"

#include <algorithm>
#include <cstring>

namespace ostro::io {

ReadAheadBudget::Share::Share(std::shared_ptr<ReadAheadBudget> budget, int64_t bytes)
    : budget_(std::move(budget)), bytes_(bytes) {
  if (budget_) budget_->left_ -= bytes_;
}

ReadAheadBudget::Share::~Share() {
  if (budget_) budget_->left_ += bytes_;
}

ReadAhead::ReadAhead(int64_t size, Fetch fetch, const ReadAheadOptions& options)
    : size_(size), fetch_(std::move(fetch)), options_(options), block_(options.first_block) {}

ReadAhead::~ReadAhead() { stop_.request_stop(); }  // the futures of std::async wait in their destructors

// A read is served from blocks if it begins in them, or where the last read ended, or at byte 0 and reaches
// to where the last read ended. Any other read, and one of max_block bytes or more, is fetched directly,
// without the lock.
Status ReadAhead::read(int64_t offset, std::span<std::byte> out) {
  const int64_t end = offset + static_cast<int64_t>(out.size());
  OSTRO_CHECK(offset >= 0 && end <= size_, "bytes [{}, {}) of {}", offset, end, size_);
  {
    const std::lock_guard lock(mutex_);
    const bool in_blocks = !blocks_.empty() && blocks_.front().begin <= offset && offset <= next_;
    const bool starts = offset <= expected_ && expected_ <= end && offset == 0;
    const bool goes_on = offset == expected_;
    expected_ = end;
    // A read of more than a block is fetched directly.
    const bool large = static_cast<int64_t>(out.size()) >= options_.max_block;
    if (!large && (in_blocks || starts || goes_on)) {
      const Status status = read_blocks(offset, out);
      if (!status.ok()) blocks_.clear();
      return status;
    }
  }
  return read_directly(offset, out);
}

Status ReadAhead::read_directly(int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), static_cast<size_t>(options_.max_block)));
    RETURN_IF_ERROR(fetch_(offset, part, stop_.get_token()));
    offset += static_cast<int64_t>(part.size());
    out = out.subspan(part.size());
  }
  return {};
}

// Drops the blocks before `offset`, keeps the window of fetches filled, and waits for the block that holds
// `offset`, until `out` is full. A read outside the blocks starts a new sequence with the smallest block
// size.
Status ReadAhead::read_blocks(int64_t offset, std::span<std::byte> out) {
  if (!blocks_.empty() && (offset < blocks_.front().begin || offset > next_)) blocks_.clear();
  while (!out.empty()) {
    while (!blocks_.empty() && blocks_.front().end() <= offset) blocks_.pop_front();
    if (blocks_.empty() && next_ != offset) {
      next_ = offset;
      block_ = options_.first_block;
    }
    fetch_ahead();
    Block& block = blocks_.front();
    if (block.done.valid()) RETURN_IF_ERROR(block.done.get());
    const auto begin = static_cast<size_t>(offset - block.begin);
    const size_t count = std::min(out.size(), block.bytes.size() - begin);
    std::memcpy(out.data(), block.bytes.data() + begin, count);
    out = out.subspan(count);
    offset += static_cast<int64_t>(count);
  }
  // A block that was read to its end is dropped, since another read of it is unlikely.
  while (!blocks_.empty() && blocks_.front().end() <= offset) blocks_.pop_front();
  return {};
}

// Starts fetches until `blocks` blocks are held or under way, each twice as large as the one before. A
// sequence begins with one block alone: a reader that needs only the header of a file then fetches no more.
// Without budget it fetches only if the reader would have nothing, and then the smallest block.
void ReadAhead::fetch_ahead() {
  const bool first = block_ == options_.first_block;
  const size_t wanted = first ? 1 : static_cast<size_t>(options_.blocks);
  while (blocks_.size() < wanted && next_ < size_) {
    int64_t length = std::min(block_, size_ - next_);
    if (options_.budget && options_.budget->left() < length) {
      if (!blocks_.empty()) return;
      length = std::min(options_.first_block, length);  // a waiting reader always gets a block
    }
    Block& block = blocks_.emplace_back(Block{{options_.budget, length}, next_, {}, {}});
    block.bytes.resize(static_cast<size_t>(length));
    next_ = block.end();
    block_ = std::min(block_ * 2, options_.max_block);
    const std::span<std::byte> bytes(block.bytes);  // stays where it is while the deque moves the block
    block.done = std::async(std::launch::async, [this, begin = block.begin, bytes] {
      return fetch_(begin, bytes, stop_.get_token());
    });
    if (first) return;
  }
}

}  // namespace ostro::io
