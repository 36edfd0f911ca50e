// EmulatedMemory: device memory on the host, with guard bytes around every block and poison in it.
//
// Thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "ostro/gpu/device/device.h"

namespace ostro::gpu {

class EmulatedMemory final : public runtime::Memory {
 public:
  explicit EmulatedMemory(int64_t bytes) : size_(bytes) {}

  std::string name() const override { return "cuda_emulated"; }
  // Error: kUnsupported when fewer than `bytes` are left.
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override;
  Status write(runtime::Block& block, int64_t at, std::span<const std::byte> from) override;
  Status read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const override;
  AvailableMemory available() const override;
  runtime::MemoryUse use() const override;
  void forget_peak() override;

  static Address address(const runtime::Block& block);
  // Says which guard bytes were written so far, of blocks that exist or were freed; "" when none were.
  std::string damage();
  // Returns true when all of these bytes lie in one block.
  bool holds(Address at, int64_t bytes) const;

 private:
  class Guarded;

  int64_t left() const { return size_ - use_.now; }  // with the mutex held

  const int64_t size_;
  mutable std::mutex mutex_;
  std::set<Guarded*> blocks_;
  std::string damage_;
  runtime::MemoryUse use_;
};

}  // namespace ostro::gpu
