#include "ostro/runtime/memory.h"

#include <cstring>

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"

namespace ostro::runtime {
namespace {

class HostBlock final : public Block {
 public:
  HostBlock(int64_t bytes, AlignedBytes storage)
      : Block(host_memory(), bytes, storage.get()), storage_(std::move(storage)) {}

 private:
  AlignedBytes storage_;
};

void check_host(const Block& block, int64_t at, size_t bytes) {
  OSTRO_CHECK(block.host() != nullptr, "a block of {} was given to the host's memory", block.memory().name());
  block.check_range(at, bytes);
}

class HostMemory final : public Memory {
 public:
  std::string name() const override { return "host"; }
  Result<std::shared_ptr<Block>> allocate(int64_t bytes) override { return allocate_on_host(bytes, false); }
  Status write(Block& block, int64_t at, std::span<const std::byte> from) override {
    check_host(block, at, from.size());
    if (!from.empty()) std::memcpy(block.host() + at, from.data(), from.size());
    return Status();
  }
  Status read(const Block& block, int64_t at, std::span<std::byte> to) const override {
    check_host(block, at, to.size());
    if (!to.empty()) std::memcpy(to.data(), block.host() + at, to.size());
    return Status();
  }
  AvailableMemory available() const override { return available_memory(); }
};

class PlainReader final : public BlockReader {
 public:
  explicit PlainReader(const Memory& memory) : memory_(memory) {}
  Status read(const Block& block, int64_t at, std::span<std::byte> to) override {
    return memory_.read(block, at, to);
  }

 private:
  const Memory& memory_;
};

}  // namespace

Result<std::unique_ptr<BlockReader>> Memory::reader() {
  return std::unique_ptr<BlockReader>(std::make_unique<PlainReader>(*this));
}

void Block::check_range(int64_t at, size_t bytes) const {
  OSTRO_CHECK(at >= 0 && at + static_cast<int64_t>(bytes) <= bytes_, "bytes {} to {} of a block of {} bytes",
              at, at + static_cast<int64_t>(bytes), bytes_);
}

Memory& host_memory() {
  static auto* const memory = new HostMemory();  // never destroyed: static variables may hold buffers
  return *memory;
}

std::shared_ptr<Block> allocate_on_host(int64_t bytes, bool zeros) {
  const auto size = static_cast<size_t>(bytes);
  return std::make_shared<HostBlock>(bytes, zeros ? allocate_zeroed(size) : allocate_aligned(size));
}

}  // namespace ostro::runtime
