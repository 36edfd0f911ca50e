#include "ostro/gpu/driver/queue.h"

#include <fmt/format.h>

#include <algorithm>

namespace ostro::gpu {
namespace {

constexpr size_t kPlaces = 4096;  // of launches that an error may name

}  // namespace

GpuQueue::GpuQueue(const Driver& driver, const GpuFacts& facts)
    : driver_(driver), facts_(facts), name_(fmt::format("cuda:{}", facts.ordinal)), places_(kPlaces) {}

Result<std::unique_ptr<GpuQueue>> GpuQueue::open(const Driver& driver, const GpuFacts& facts) {
  std::unique_ptr<GpuQueue> out(new GpuQueue(driver, facts));
  const CudaSlots& cuda = driver.slots();
  const std::string doing = fmt::format("{} ({}): opening it", out->name_, facts.name);
  int device = 0;
  RETURN_IF_ERROR(driver.check(cuda.device(&device, facts.ordinal), doing));
  RETURN_IF_ERROR(driver.check(cuda.retain_context(&out->context_, device), doing));
  RETURN_IF_ERROR(driver.check(cuda.set_context(out->context_), doing));
  RETURN_IF_ERROR(driver.check(cuda.create_stream(&out->stream_, kOwnStream), doing));
  return out;
}

Status GpuQueue::enter() {
  if (ended_) {
    const std::lock_guard lock(mutex_);
    return *end_;
  }
  return check(cuda().set_context(context_), "taking its context");
}

Result<void*> GpuQueue::copy_stream() {
  RETURN_IF_ERROR(enter());
  const std::lock_guard lock(copy_mutex_);
  if (copy_stream_ == nullptr)
    RETURN_IF_ERROR(check(cuda().create_stream(&copy_stream_, kOwnStream), "making a stream for copies"));
  return copy_stream_;
}

void GpuQueue::note_launch(std::string_view place) {
  const std::lock_guard lock(mutex_);
  places_[++launched_ % kPlaces].assign(place);
}

uint64_t GpuQueue::launched() {
  const std::lock_guard lock(mutex_);
  return launched_;
}

void GpuQueue::note_done(uint64_t launch) {
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, launch);
}

Status GpuQueue::wait(std::string_view doing) {
  RETURN_IF_ERROR(enter());
  const uint64_t before = launched();
  RETURN_IF_ERROR(check(cuda().wait_stream(stream_), doing));
  note_done(before);
  return Status();
}

Status GpuQueue::fail(int result, std::string_view doing, std::string_view place) {
  const std::lock_guard lock(mutex_);
  std::string what = fmt::format("{}: {}", name_, doing);
  if (!place.empty()) what += fmt::format(" of {}", place);
  // Work that was begun before may be what failed.
  if (ends_the_device(result) && launched_ > done_) {
    const uint64_t known = std::min<uint64_t>(launched_ - done_, kPlaces);
    const std::string &first = places_[(launched_ - known + 1) % kPlaces],
                      &last = places_[launched_ % kPlaces];
    what += known == 1 ? fmt::format(" (running: {})", last)
                       : fmt::format(" (running: one of {} ops from {} to {})", known, first, last);
  }
  Error error = driver_.error(result, what);
  if (ends_the_device(result) && !end_) {
    end_ = error;
    ended_ = true;
  }
  return error;
}

}  // namespace ostro::gpu
