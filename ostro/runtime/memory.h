// Memory: the memory in which the arrays of an engine lie, such as the host's or that of a device.
//
// Only the host's memory has addresses that this program can read. Bytes of any other memory are reached
// through read() and write() alone, so code outside of the engines works with every memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/machine.h"

namespace ostro::runtime {

class Block;

// Bytes of the blocks that a memory has given out: now, and at most at a time. A block counts as what it
// takes (Memory::taken).
struct MemoryUse {
  int64_t now = 0, peak = 0;
};

// Reads blocks of a memory as they were when the reader was made, beside work that is begun afterwards. A
// block must stay until it is read, and no work may write it meanwhile. Any one thread at a time; it must not
// outlive the memory.
class BlockReader {
 public:
  virtual ~BlockReader() = default;
  // Copies to the host, and waits for the copy, not for work that was begun after the reader was made.
  virtual Status read(const Block& block, int64_t at, std::span<std::byte> to) = 0;
};

// There is one object for each memory. It lives until the process ends, because blocks refer to it.
// Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::string name() const = 0;  // "host", "cuda:0"
  // A new block, whose bytes are not initialised. Error: the memory has no room for it.
  virtual Result<std::shared_ptr<Block>> allocate(int64_t bytes) = 0;
  // Copies from the host to the bytes of the block from `at` on.
  virtual Status write(Block& block, int64_t at, std::span<const std::byte> from) = 0;
  // Copies to the host. Waits until everything that was started before, and writes the block, has finished.
  virtual Status read(const Block& block, int64_t at, std::span<std::byte> to) const = 0;
  // For another thread (BlockReader). Where nothing is said it reads as read() does.
  virtual Result<std::unique_ptr<BlockReader>> reader();
  // The bytes that can still be allocated, and the limit that gives them; 0 bytes: not known.
  virtual AvailableMemory available() const { return {}; }
  // What is in use, counted since the memory was opened or forget_peak() was called. Both 0: the memory does
  // not count.
  virtual MemoryUse use() const { return {}; }
  virtual void forget_peak() {}
  // The bytes that a block of `bytes` takes; more where blocks have certain sizes only.
  virtual int64_t taken(int64_t bytes) const { return bytes; }
};

// One allocation of a memory. Freed with its last handle.
class Block {
 public:
  // `host`: the address of the first byte, or null when the host cannot address the memory.
  Block(Memory& memory, int64_t bytes, std::byte* host) : memory_(memory), bytes_(bytes), host_(host) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Memory& memory() const { return memory_; }
  int64_t bytes() const { return bytes_; }
  std::byte* host() const { return host_; }
  // Whether the bytes are something else's, such as a mapped file's (owned_buffer).
  virtual bool is_borrowed() const { return false; }
  // Aborts unless the `bytes` bytes from `at` on lie in the block.
  void check_range(int64_t at, size_t bytes) const;

 private:
  Memory& memory_;
  int64_t bytes_;
  std::byte* host_;
};

// The memory of this process, the default of every engine. Blocks are aligned to kAlignment (base/aligned.h).
// allocate() returns no error: it throws OutOfMemory (base/out_of_memory.h) when memory is exhausted.
Memory& host_memory();
// The same as host_memory().allocate; with `zeros` all bits are zero.
std::shared_ptr<Block> allocate_on_host(int64_t bytes, bool zeros);

}  // namespace ostro::runtime
