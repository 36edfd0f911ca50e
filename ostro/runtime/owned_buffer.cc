#include "ostro/runtime/owned_buffer.h"

#include <cstdint>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"

namespace ostro::runtime {
namespace {

class OwnedBlock final : public Block {
 public:
  OwnedBlock(std::span<std::byte> bytes, std::shared_ptr<void> owner)
      : Block(host_memory(), std::ssize(bytes), bytes.data()), owner_(std::move(owner)) {}
  bool is_borrowed() const override { return true; }

 private:
  std::shared_ptr<void> owner_;
};

// The host's memory, which gives one block that is there already.
class OwnedMemory final : public Memory {
 public:
  OwnedMemory(std::span<std::byte> bytes, std::shared_ptr<void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  std::string name() const override { return host_memory().name(); }
  Result<std::shared_ptr<Block>> allocate(int64_t bytes) override {
    OSTRO_CHECK(bytes == std::ssize(bytes_), "a buffer of {} bytes of {}", bytes, bytes_.size());
    return std::shared_ptr<Block>(std::make_shared<OwnedBlock>(bytes_, owner_));
  }
  Status write(Block& block, int64_t at, std::span<const std::byte> from) override {
    return host_memory().write(block, at, from);
  }
  Status read(const Block& block, int64_t at, std::span<std::byte> to) const override {
    return host_memory().read(block, at, to);
  }

 private:
  std::span<std::byte> bytes_;
  std::shared_ptr<void> owner_;
};

}  // namespace

Buffer owned_buffer(ir::Shape shape, std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  OSTRO_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0, "a buffer at {}",
              static_cast<const void*>(bytes.data()));
  OwnedMemory memory(bytes, std::move(owner));
  auto out = Buffer::allocate(std::move(shape), memory);
  OSTRO_CHECK(out.ok(), "{}", out.error().message());
  return *std::move(out);
}

}  // namespace ostro::runtime
