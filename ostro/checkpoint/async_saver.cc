#include "ostro/checkpoint/async_saver.h"

#include <chrono>

#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/profile.h"
#include "ostro/checkpoint/catalog.h"

namespace ostro::checkpoint {
namespace {

Tensor owned(const Tensor& tensor) {
  if (tensor.owner != nullptr) return tensor;
  auto copy = std::make_shared<std::vector<std::byte>>(tensor.bytes.begin(), tensor.bytes.end());
  const std::span<const std::byte> bytes = *copy;
  return {tensor.spec, bytes, std::move(copy)};
}

}  // namespace

AsyncSaver::AsyncSaver(io::FileSystem& fs, std::string root, SaveOptions options)
    : fs_(fs), root_(std::move(root)), options_(options), thread_([this] { run(); }) {}

AsyncSaver::~AsyncSaver() {
  if (const auto result = wait(); !result.ok()) {
    log_error(fmt::format("the last checkpoint was not saved: {}", result.error().message()));
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status AsyncSaver::start(const Info& info, std::span<const Tensor> tensors) {
  if (const auto before = wait(); !before.ok()) return before.error();
  std::vector<Tensor> kept;
  for (const Tensor& tensor : tensors) kept.push_back(owned(tensor));
  return start(info, Bring([kept = std::move(kept)]() -> Result<std::vector<Tensor>> { return kept; }));
}

Status AsyncSaver::start(const Info& info, Bring bring) {
  return start([this, info, bring = std::move(bring)]() -> Result<std::optional<Saved>> {
    ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, bring());
    ASSIGN_OR_RETURN(Saved saved, save(fs_, root_, info, tensors, options_));
    RETURN_IF_ERROR(prune_checkpoints(fs_, root_, info.step));
    return std::optional<Saved>(std::move(saved));
  });
}

Status AsyncSaver::start(Write write) {
  if (const auto before = wait(); !before.ok()) return before.error();
  failpoint("snapshot");
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(write);
  }
  changed_.notify_all();
  return {};
}

Result<std::optional<Saved>> AsyncSaver::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job_.has_value(); });
  const Status status = std::exchange(status_, Status());
  if (!status.ok()) return status.error();
  return saved_;
}

bool AsyncSaver::running() const {
  const std::lock_guard lock(mutex_);
  return job_.has_value();
}

AsyncSaver::Written AsyncSaver::written() const {
  const std::lock_guard lock(mutex_);
  Written out = written_;
  out.running = job_.has_value();
  return out;
}

void AsyncSaver::run() {
  name_thread("checkpoint writer");
  const SpanLabelPtr label = std::make_shared<SpanLabel>(SpanLabel{"write checkpoint", "thread", {}, 0, 0});
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return job_.has_value() || stopping_; });
    if (!job_.has_value()) return;
    lock.unlock();
    std::optional<Span> span(std::in_place, &label);
    const auto begin = std::chrono::steady_clock::now();
    auto saved = (*job_)();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    span.reset();
    lock.lock();
    if (saved.ok() && saved->has_value())
      written_ = {written_.saves + 1, written_.seconds + seconds, seconds, false};
    status_ = saved.ok() ? Status() : Status(saved.error());
    if (saved.ok()) saved_ = std::move(saved).value();
    job_.reset();
    changed_.notify_all();
  }
}

}  // namespace ostro::checkpoint
