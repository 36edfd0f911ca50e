#include "ostro/gpu/driver/staging.h"

#include <algorithm>
#include <cstring>

namespace ostro::gpu {

Result<std::unique_ptr<Staging>> Staging::make(GpuQueue& queue) { return make_on(queue, queue.stream()); }

Result<std::unique_ptr<Staging>> Staging::make_beside(GpuQueue& queue) {
  ASSIGN_OR_RETURN(void* const stream, queue.copy_stream());
  return make_on(queue, stream);
}

Result<std::unique_ptr<Staging>> Staging::make_on(GpuQueue& queue, void* stream) {
  std::unique_ptr<Staging> out(new Staging(queue, stream));
  RETURN_IF_ERROR(queue.enter());
  for (Slot& slot : out->slots_)
    RETURN_IF_ERROR(
        queue.check(queue.cuda().create_event(&slot.event, kEventWithoutTime), "making an event"));
  // All at once and last, so that nothing is left of it when this fails.
  void* bytes = nullptr;
  RETURN_IF_ERROR(
      queue.check(queue.cuda().allocate_pinned(&bytes, 2 * kBytes, 0), "taking pinned memory of the host"));
  out->slots_[0].bytes = static_cast<std::byte*>(bytes);
  out->slots_[1].bytes = out->slots_[0].bytes + kBytes;
  return out;
}

Status Staging::settle(Slot& slot) {
  if (!slot.in_use) return Status();
  slot.in_use = false;
  RETURN_IF_ERROR(queue_.check(queue_.cuda().wait_event(slot.event), "waiting for a copy"));
  queue_.note_done(slot.launches);
  return Status();
}

Status Staging::mark(Slot& slot, int copied, const char* doing) {
  RETURN_IF_ERROR(queue_.check(copied, doing));
  slot.launches = beside() ? 0 : queue_.launched();
  const Status marked = queue_.check(queue_.cuda().record_event(slot.event, stream_), "marking a copy");
  // The copy was begun, and nothing tells when it ends.
  if (!marked.ok()) (void)queue_.check(queue_.cuda().wait_stream(stream_), "waiting for a copy");
  slot.in_use = marked.ok();
  return marked;
}

Status Staging::write(uint64_t to, std::span<const std::byte> from) {
  RETURN_IF_ERROR(queue_.enter());
  const std::lock_guard lock(mutex_);
  for (size_t at = 0; at < from.size();) {
    Slot& slot = slots_[next_];
    next_ = 1 - next_;
    const size_t bytes = std::min(kBytes, from.size() - at);
    RETURN_IF_ERROR(settle(slot));
    std::memcpy(slot.bytes, from.data() + at, bytes);
    RETURN_IF_ERROR(mark(slot, queue_.cuda().copy_in(to + at, slot.bytes, bytes, stream_), "a copy to it"));
    at += bytes;
  }
  return Status();
}

// While the bytes of one buffer are copied to their place, those of the next are on their way.
Status Staging::read(uint64_t from, std::span<std::byte> to) {
  RETURN_IF_ERROR(queue_.enter());
  const std::lock_guard lock(mutex_);
  const size_t chunks = (to.size() + kBytes - 1) / kBytes;
  const auto part = [&](size_t i) {
    return to.subspan(i * kBytes, std::min(kBytes, to.size() - i * kBytes));
  };
  const auto begin = [&](size_t i) -> Status {
    Slot& slot = slots_[i % 2];
    RETURN_IF_ERROR(settle(slot));
    return mark(slot, queue_.cuda().copy_out(slot.bytes, from + i * kBytes, part(i).size(), stream_),
                "a copy from it");
  };
  for (size_t i = 0; i < chunks; ++i) {
    if (i == 0) RETURN_IF_ERROR(begin(0));
    if (i + 1 < chunks) RETURN_IF_ERROR(begin(i + 1));
    RETURN_IF_ERROR(settle(slots_[i % 2]));
    std::memcpy(part(i).data(), slots_[i % 2].bytes, part(i).size());
  }
  return Status();
}

}  // namespace ostro::gpu
