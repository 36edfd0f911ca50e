#include "tests/engine/far_memory.h"

#include <cstring>

#include "ostro/base/check.h"

namespace ostro::test {
namespace {

constexpr std::byte kUnwritten{0xa7};

thread_local bool inside_device = false;  // a read that is not the host's

// The address of `storage` is known here alone: Block is given none.
class FarBlock final : public runtime::Block {
 public:
  FarBlock(FarMemory& memory, int64_t bytes, std::atomic<int64_t>& blocks)
      : Block(memory, bytes, nullptr), storage(static_cast<size_t>(bytes), kUnwritten), blocks_(blocks) {
    ++blocks_;
  }
  ~FarBlock() override { --blocks_; }

  std::vector<std::byte> storage;

 private:
  std::atomic<int64_t>& blocks_;
};

std::span<std::byte> part_of(runtime::Block& block, int64_t at, size_t bytes) {
  auto* far = dynamic_cast<FarBlock*>(&block);
  OSTRO_CHECK(far != nullptr, "a block of {} was given to far memory", block.memory().name());
  OSTRO_CHECK(at >= 0 && at + static_cast<int64_t>(bytes) <= block.bytes(),
              "bytes {} to {} of a block of {} bytes", at, at + static_cast<int64_t>(bytes), block.bytes());
  return std::span(far->storage).subspan(static_cast<size_t>(at), bytes);
}

}  // namespace

Result<std::shared_ptr<runtime::Block>> FarMemory::allocate(int64_t bytes) {
  return std::shared_ptr<runtime::Block>(std::make_shared<FarBlock>(*this, bytes, blocks_));
}

Status FarMemory::write(runtime::Block& block, int64_t at, std::span<const std::byte> from) {
  const std::span<std::byte> to = part_of(block, at, from.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return Status();
}

Status FarMemory::read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const {
  if (!inside_device) ++reads_;
  const std::span<std::byte> from = part_of(const_cast<runtime::Block&>(block), at, to.size());
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
  return Status();
}

runtime::Buffer FarMemory::near(const runtime::Buffer& far) const {
  runtime::Buffer near = runtime::Buffer::empty(far.shape());
  inside_device = true;
  const Status copied = far.read(near.mutable_bytes());
  inside_device = false;
  OSTRO_CHECK(copied.ok(), "far memory does not fail");
  return near;
}

Result<runtime::Buffer> FarMemory::far(const runtime::Buffer& near) { return near.to(*this); }

FarMemory& far_memory() {
  static auto* const memory = new FarMemory();
  return *memory;
}

}  // namespace ostro::test
