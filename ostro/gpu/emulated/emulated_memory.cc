#include "ostro/gpu/emulated/emulated_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"

namespace ostro::gpu {
namespace {

constexpr int64_t kGuard = 256;  // bytes before and after a block; blocks are aligned to as much
constexpr int kGuardByte = 0x5c, kPoison = 0xa7;

}  // namespace

class EmulatedMemory::Guarded final : public runtime::Block {
 public:
  Guarded(EmulatedMemory& memory, int64_t bytes)
      : Block(memory, bytes, nullptr),
        memory_(memory),
        storage_(allocate_aligned(static_cast<size_t>(bytes + 3 * kGuard))) {
    auto at = reinterpret_cast<uint64_t>(storage_.get());
    data = reinterpret_cast<std::byte*>((at + 2 * kGuard - 1) / kGuard * kGuard);
    std::memset(data - kGuard, kGuardByte, kGuard);
    std::memset(data, kPoison, static_cast<size_t>(bytes));
    std::memset(data + bytes, kGuardByte, kGuard);
  }
  ~Guarded() override {
    const std::lock_guard lock(memory_.mutex_);
    if (memory_.damage_.empty()) memory_.damage_ = damage();
    memory_.blocks_.erase(this);
    memory_.use_.now -= bytes();
  }
  std::string damage() const {
    static const std::vector<std::byte> kWhole(kGuard, std::byte{kGuardByte});
    if (std::memcmp(data - kGuard, kWhole.data(), kGuard) == 0 &&
        std::memcmp(data + bytes(), kWhole.data(), kGuard) == 0)
      return "";
    for (int64_t i = 0; i < kGuard; ++i) {
      if (data[-1 - i] != std::byte{kGuardByte})
        return fmt::format("byte {} before a block of {} bytes was written", i + 1, bytes());
      if (data[bytes() + i] != std::byte{kGuardByte})
        return fmt::format("byte {} after a block of {} bytes was written", i, bytes());
    }
    return "";
  }

  std::byte* data;

 private:
  EmulatedMemory& memory_;
  AlignedBytes storage_;
};

Result<std::shared_ptr<runtime::Block>> EmulatedMemory::allocate(int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (bytes > left())
      return unsupported(
          fmt::format("the emulated device has no room for {} bytes: {} are left", bytes, left()));
    use_.now += bytes;
    use_.peak = std::max(use_.peak, use_.now);
  }
  auto block = std::make_shared<Guarded>(*this, bytes);
  const std::lock_guard lock(mutex_);
  blocks_.insert(block.get());
  return std::shared_ptr<runtime::Block>(std::move(block));
}

AvailableMemory EmulatedMemory::available() const {
  const std::lock_guard lock(mutex_);
  return {.bytes = left(), .source = "left of the emulated device"};
}

runtime::MemoryUse EmulatedMemory::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void EmulatedMemory::forget_peak() {
  const std::lock_guard lock(mutex_);
  use_.peak = use_.now;
}

Address EmulatedMemory::address(const runtime::Block& block) {
  const auto* guarded = dynamic_cast<const Guarded*>(&block);
  OSTRO_CHECK(guarded != nullptr, "a block of {} was given to the emulated device", block.memory().name());
  return {reinterpret_cast<uint64_t>(guarded->data)};
}

Status EmulatedMemory::write(runtime::Block& block, int64_t at, std::span<const std::byte> from) {
  block.check_range(at, from.size());
  if (!from.empty()) std::memcpy(reinterpret_cast<void*>((address(block) + at).at), from.data(), from.size());
  return Status();
}

Status EmulatedMemory::read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const {
  block.check_range(at, to.size());
  if (!to.empty()) std::memcpy(to.data(), reinterpret_cast<const void*>((address(block) + at).at), to.size());
  return Status();
}

std::string EmulatedMemory::damage() {
  const std::lock_guard lock(mutex_);
  for (const Guarded* block : blocks_)
    if (damage_.empty()) damage_ = block->damage();
  return damage_;
}

bool EmulatedMemory::holds(Address at, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Guarded* block) {
    const auto first = reinterpret_cast<uint64_t>(block->data);
    return at.at >= first &&
           at.at + static_cast<uint64_t>(bytes) <= first + static_cast<uint64_t>(block->bytes());
  });
}

}  // namespace ostro::gpu
