// FarMemory: a memory for tests that the host cannot address, as that of a device. Its bytes are reached
// through runtime::Memory and by FarEngine alone; Buffer aborts when anything else asks for them.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "ostro/runtime/buffer.h"

namespace ostro::test {

// Thread-safe.
class FarMemory final : public runtime::Memory {
 public:
  std::string name() const override { return "far"; }
  // The bytes are not zero, so that a program that reads what nothing has written gives other results.
  Result<std::shared_ptr<runtime::Block>> allocate(int64_t bytes) override;
  Status write(runtime::Block& block, int64_t at, std::span<const std::byte> from) override;
  Status read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const override;

  // What the engine itself does on the device: copies that are not counted.
  runtime::Buffer near(const runtime::Buffer& far) const;
  Result<runtime::Buffer> far(const runtime::Buffer& near);

  // Calls of read() so far; blocks that are there.
  int64_t reads() const { return reads_; }
  int64_t blocks() const { return blocks_; }

 private:
  mutable std::atomic<int64_t> reads_ = 0;
  std::atomic<int64_t> blocks_ = 0;
};

// The only one, which lives until the process ends.
FarMemory& far_memory();

}  // namespace ostro::test
