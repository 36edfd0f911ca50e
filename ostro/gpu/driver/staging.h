// Staging: copies between the host and a GPU, through two pinned buffers that are filled and sent in turn.
//
// A driver copies from pinned memory without waiting, so a write returns when the last bytes are in a buffer,
// and the next one waits only for the buffer that it takes. Thread-safe; copies take turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "ostro/base/error.h"
#include "ostro/gpu/driver/queue.h"

namespace ostro::gpu {

class Staging {
 public:
  static constexpr size_t kBytes = 4 << 20;  // of a buffer

  // `queue` must outlive it. Error: the driver cannot allocate pinned memory.
  static Result<std::unique_ptr<Staging>> make(GpuQueue& queue);
  // Copies go through another stream (GpuQueue::copy_stream), beside the queue's work.
  static Result<std::unique_ptr<Staging>> make_beside(GpuQueue& queue);
  void* stream() const { return stream_; }

  // Copies to the GPU. The bytes at `from` may be changed when it returns.
  Status write(uint64_t to, std::span<const std::byte> from);
  // Copies from the GPU; waits for the bytes, and so for all work before.
  Status read(uint64_t from, std::span<std::byte> to);

 private:
  struct Slot {
    std::byte* bytes = nullptr;
    void* event = nullptr;
    bool in_use = false;    // a copy was begun, which the event marks
    uint64_t launches = 0;  // that are done when it is
  };
  Staging(GpuQueue& queue, void* stream) : queue_(queue), stream_(stream) {}
  static Result<std::unique_ptr<Staging>> make_on(GpuQueue& queue, void* stream);
  bool beside() const { return stream_ != queue_.stream(); }
  // Waits for the copy of a slot.
  Status settle(Slot& slot);
  // Marks the end of the copy of a slot, whose beginning gave `copied`.
  Status mark(Slot& slot, int copied, const char* doing);

  GpuQueue& queue_;
  void* const stream_;
  std::mutex mutex_;
  Slot slots_[2];
  size_t next_ = 0;
};

}  // namespace ostro::gpu
