// GpuMemory: the memory of a GPU: blocks out of a pool, which keeps what is freed for the next that is like
// it.
//
// All work on a GPU is in one queue, so a block that is taken again is first used when the work that used it
// before is done: taking and freeing wait for nothing. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ostro/cuda/driver/queue.h"
#include "ostro/cuda/driver/staging.h"
#include "ostro/runtime/memory.h"

namespace ostro::cuda {

class GpuMemory final : public runtime::Memory {
 public:
  // `queue` and `staging` must outlive it, and it its blocks.
  GpuMemory(GpuQueue& queue, Staging& staging) : queue_(queue), staging_(staging) {}

  std::string name() const override { return queue_.name(); }
  // Error: kIo: the GPU has no room, also without what the pool keeps: the bytes that were asked for, that
  // this process has, and that are free.
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override;
  Status write(runtime::Block& block, int64_t at, std::span<const std::byte> from) override;
  Status read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const override;
  // What the GPU has free, and what the pool keeps.
  AvailableMemory available() const override;
  // Of the first byte of a block of this memory.
  uint64_t address(const runtime::Block& block) const;

  // Bytes that a block of so many takes.
  static int64_t taken(int64_t bytes);
  // Bytes of blocks that are there, and of those that the pool keeps.
  int64_t used_bytes() const;
  int64_t kept_bytes() const;

 private:
  friend class GpuBlock;
  void give_back(uint64_t address, int64_t taken);
  // Returns all that the pool keeps to the driver.
  Status empty_pool();
  Error no_room(int64_t bytes);

  GpuQueue& queue_;
  Staging& staging_;
  mutable std::mutex mutex_;
  std::multimap<int64_t, uint64_t> kept_;  // addresses by size
  int64_t used_bytes_ = 0, kept_bytes_ = 0;
};

}  // namespace ostro::cuda
