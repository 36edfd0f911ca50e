#include "ostro/batches/loader/prefetcher.h"

#include "ostro/base/profile.h"

namespace ostro::batches {

Prefetcher::Prefetcher(Make make, int64_t first_step, size_t depth)
    : make_(std::move(make)), step_(first_step), depth_(depth) {
  OSTRO_CHECK(depth >= 1, "a prefetcher of depth {}", depth);
  thread_ = std::thread([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<Batch> Prefetcher::next(Batch done) {
  std::unique_lock lock(mutex_);
  if (!done.tokens.empty()) spares_.push_back(std::move(done));
  changed_.wait(lock, [this] { return !ready_.empty(); });
  if (!ready_.front().ok()) return ready_.front().error();
  Result<Batch> batch = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

Batch Prefetcher::take_spare() {
  const std::lock_guard lock(mutex_);
  if (spares_.empty()) return {};
  Batch spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

// Makes a batch before it waits for a free place, so depth + 1 batches may exist besides the one in use. The
// loop ends after the first error, which stays in the queue.
void Prefetcher::work() {
  name_thread("batches");
  const SpanLabelPtr label = std::make_shared<SpanLabel>(SpanLabel{"make batch", "thread", {}, 0, 0});
  const auto make = [&] {
    const Span span(&label);
    return make_(step_, take_spare());
  };
  for (bool ok = true; ok; ++step_) {
    Result<Batch> batch = make();
    ok = batch.ok();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || ready_.size() < depth_; });
    if (stop_) return;
    ready_.push_back(std::move(batch));
    lock.unlock();
    changed_.notify_all();
  }
}

}  // namespace ostro::batches
