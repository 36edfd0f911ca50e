// GpuMemory: the memory of a GPU: blocks from a pool, which keeps freed memory for the next block of its
// size.
//
// All work on a GPU is in one queue, so a block that is taken again is first used when the work that used it
// before is done: taking and freeing wait for nothing. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ostro/gpu/driver/queue.h"
#include "ostro/gpu/driver/staging.h"
#include "ostro/runtime/memory.h"

namespace ostro::gpu {

class GpuMemory final : public runtime::Memory {
 public:
  // `queue` and `staging` must outlive it, and it must outlive its blocks.
  GpuMemory(GpuQueue& queue, Staging& staging) : queue_(queue), staging_(staging) {}

  std::string name() const override { return queue_.name(); }
  // Error: kDevice when the GPU has no room, even after the pool has returned what it keeps. The message has
  // the bytes that were asked for, that this process has, and that are free.
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override;
  Status write(runtime::Block& block, int64_t at, std::span<const std::byte> from) override;
  Status read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const override;
  // Reads through a stream of its own, which waits for the work that was begun before, and for no other.
  Result<std::unique_ptr<runtime::BlockReader>> reader() override;
  // The free bytes of the GPU, with those that the pool keeps.
  AvailableMemory available() const override;
  // The address of the first byte of a block of this memory.
  uint64_t address(const runtime::Block& block) const;

  // Sizes are an eighth of a power of two apart. A freed block is taken again for its own size only, so the
  // bytes in use follow from the sizes that were asked for, and can be planned.
  int64_t taken(int64_t bytes) const override;
  runtime::MemoryUse use() const override;
  void forget_peak() override;
  // The bytes of freed blocks that the pool keeps.
  int64_t kept_bytes() const;

 private:
  friend class GpuBlock;
  void give_back(uint64_t address, int64_t taken);
  // Returns all that the pool keeps to the driver.
  Status empty_pool();
  Error no_room(int64_t bytes);

  GpuQueue& queue_;
  Staging& staging_;
  std::unique_ptr<Staging> beside_;  // made with the first reader, under mutex_
  mutable std::mutex mutex_;
  std::multimap<int64_t, uint64_t> kept_;  // addresses by size
  runtime::MemoryUse use_;
  int64_t kept_bytes_ = 0;
};

}  // namespace ostro::gpu
