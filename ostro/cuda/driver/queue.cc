#include "ostro/cuda/driver/queue.h"

#include <fmt/format.h>

namespace ostro::cuda {

GpuQueue::GpuQueue(const Driver& driver, const GpuFacts& facts)
    : driver_(driver), facts_(facts), name_(fmt::format("cuda:{}", facts.ordinal)) {}

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

void GpuQueue::note_launch(std::string_view place) {
  const std::lock_guard lock(mutex_);
  if (first_place_.empty()) first_place_ = place;
  last_place_ = place;
}

Status GpuQueue::wait(std::string_view doing) {
  RETURN_IF_ERROR(enter());
  RETURN_IF_ERROR(check(cuda().wait_stream(stream_), doing));
  const std::lock_guard lock(mutex_);
  first_place_.clear();
  last_place_.clear();
  return Status();
}

Status GpuQueue::fail(int result, std::string_view doing, std::string_view place) {
  const std::lock_guard lock(mutex_);
  std::string what = fmt::format("{}: {}", name_, doing);
  if (!place.empty()) what += fmt::format(" of {}", place);
  // Work that was begun before may be what failed.
  if (ends_the_device(result) && !last_place_.empty())
    what += first_place_ == last_place_
                ? fmt::format(" (running: {})", last_place_)
                : fmt::format(" (running: one of the ops from {} to {})", first_place_, last_place_);
  Error error = driver_.error(result, what);
  if (ends_the_device(result) && !end_) {
    end_ = error;
    ended_ = true;
  }
  return error;
}

}  // namespace ostro::cuda
