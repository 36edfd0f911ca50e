#include "ostro/gpu/driver/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ostro/base/check.h"

namespace ostro::gpu {

class GpuBlock final : public runtime::Block {
 public:
  GpuBlock(GpuMemory& memory, int64_t bytes, uint64_t address, int64_t taken)
      : Block(memory, bytes, nullptr), address_(address), taken_(taken), pool_(memory) {}
  ~GpuBlock() override { pool_.give_back(address_, taken_); }
  uint64_t address() const { return address_; }

 private:
  uint64_t address_;
  int64_t taken_;
  GpuMemory& pool_;
};

namespace {

class GpuReader final : public runtime::BlockReader {
 public:
  // Takes the event, which marks the work that was begun before.
  GpuReader(const GpuMemory& memory, GpuQueue& queue, Staging& staging, void* event)
      : memory_(memory), queue_(queue), staging_(staging), event_(event) {}
  ~GpuReader() override {
    if (!queue_.ended()) (void)queue_.cuda().destroy_event(event_);
  }
  Status read(const runtime::Block& block, int64_t at, std::span<std::byte> to) override {
    block.check_range(at, to.size());
    RETURN_IF_ERROR(queue_.enter());
    if (!waits_)
      RETURN_IF_ERROR(queue_.check(queue_.cuda().stream_waits(staging_.stream(), event_, 0),
                                   "letting a copy wait for its work"));
    waits_ = true;
    return staging_.read(memory_.address(block) + static_cast<uint64_t>(at), to);
  }

 private:
  const GpuMemory& memory_;
  GpuQueue& queue_;
  Staging& staging_;
  void* const event_;
  bool waits_ = false;  // the stream of copies, for the event
};

std::string megabytes(int64_t bytes) {
  return bytes < 100'000 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

int64_t GpuMemory::taken(int64_t bytes) const {
  constexpr int64_t kLeast = 512;
  if (bytes <= kLeast) return kLeast;
  const int64_t step =
      std::max(kLeast, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)) / 8));
  return (bytes + step - 1) / step * step;
}

Result<std::shared_ptr<runtime::Block>> GpuMemory::allocate(int64_t bytes) {
  RETURN_IF_ERROR(queue_.enter());
  const int64_t size = taken(bytes);
  const std::lock_guard lock(mutex_);
  const auto block = [&](uint64_t address) {
    use_.now += size;
    use_.peak = std::max(use_.peak, use_.now);
    return std::shared_ptr<runtime::Block>(std::make_shared<GpuBlock>(*this, bytes, address, size));
  };
  if (const auto found = kept_.find(size); found != kept_.end()) {
    const uint64_t address = found->second;
    kept_.erase(found);
    kept_bytes_ -= size;
    return block(address);
  }
  uint64_t address = 0;
  int result = queue_.cuda().allocate(&address, static_cast<size_t>(size));
  if (result == kOutOfMemory && !kept_.empty()) {
    RETURN_IF_ERROR(empty_pool());
    result = queue_.cuda().allocate(&address, static_cast<size_t>(size));
  }
  if (result == kOutOfMemory) return no_room(bytes);
  RETURN_IF_ERROR(queue_.check(result, "taking memory"));
  return block(address);
}

Status GpuMemory::write(runtime::Block& block, int64_t at, std::span<const std::byte> from) {
  block.check_range(at, from.size());
  return staging_.write(address(block) + static_cast<uint64_t>(at), from);
}

Status GpuMemory::read(const runtime::Block& block, int64_t at, std::span<std::byte> to) const {
  block.check_range(at, to.size());
  return staging_.read(address(block) + static_cast<uint64_t>(at), to);
}

Result<std::unique_ptr<runtime::BlockReader>> GpuMemory::reader() {
  RETURN_IF_ERROR(queue_.enter());
  {
    const std::lock_guard lock(mutex_);
    if (beside_ == nullptr) {
      ASSIGN_OR_RETURN(beside_, Staging::make_beside(queue_));
    }
  }
  void* event = nullptr;
  RETURN_IF_ERROR(queue_.check(queue_.cuda().create_event(&event, kEventWithoutTime), "making an event"));
  auto out = std::make_unique<GpuReader>(*this, queue_, *beside_, event);
  RETURN_IF_ERROR(queue_.check(queue_.cuda().record_event(event, queue_.stream()), "marking its queue"));
  return std::unique_ptr<runtime::BlockReader>(std::move(out));
}

AvailableMemory GpuMemory::available() const {
  size_t free = 0, total = 0;
  if (!queue_.enter().ok() || queue_.cuda().memory_info(&free, &total) != 0) return {};
  return {.bytes = static_cast<int64_t>(free) + kept_bytes(), .source = "free on " + name()};
}

uint64_t GpuMemory::address(const runtime::Block& block) const {
  const auto* ours = dynamic_cast<const GpuBlock*>(&block);
  OSTRO_CHECK(ours != nullptr && &ours->memory() == this, "a block of {} was given to {}",
              block.memory().name(), name());
  return ours->address();
}

runtime::MemoryUse GpuMemory::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void GpuMemory::forget_peak() {
  const std::lock_guard lock(mutex_);
  use_.peak = use_.now;
}

int64_t GpuMemory::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

void GpuMemory::give_back(uint64_t address, int64_t taken) {
  const std::lock_guard lock(mutex_);
  use_.now -= taken;
  kept_bytes_ += taken;
  kept_.emplace(taken, address);
}

Status GpuMemory::empty_pool() {
  RETURN_IF_ERROR(queue_.wait("waiting before memory is returned"));
  for (const auto& [size, address] : kept_)
    RETURN_IF_ERROR(queue_.check(queue_.cuda().free(address), "returning memory"));
  kept_.clear();
  kept_bytes_ = 0;
  return Status();
}

Error GpuMemory::no_room(int64_t bytes) {
  size_t free = 0, total = 0;
  std::string free_text = "an unknown number";
  if (queue_.cuda().memory_info(&free, &total) == 0) free_text = megabytes(static_cast<int64_t>(free));
  return device_error(fmt::format(
      "{} ({}) has no room for {} more: {} of its {} are free, this process uses {}; training takes "
      "less with model.gradient_checkpointing: true (the same hash) or a shorter model.seq_len. Another "
      "process on this GPU "
      "(nvidia-smi names it) takes room, too. --device cpu uses the host's memory, with the same hash",
      name(), queue_.facts().name, megabytes(bytes), free_text, megabytes(queue_.facts().memory_bytes),
      megabytes(use_.now)));
}

}  // namespace ostro::gpu
