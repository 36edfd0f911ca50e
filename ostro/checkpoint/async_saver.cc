#include "ostro/checkpoint/async_saver.h"

#include <cstring>

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
  Job job{.info = info};
  for (const Tensor& tensor : tensors) job.tensors.push_back(owned(tensor));
  failpoint("snapshot");
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
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

void AsyncSaver::run() {
  name_thread("checkpoint writer");
  const SpanLabelPtr label = std::make_shared<SpanLabel>(SpanLabel{"write checkpoint", "thread", {}, 0, 0});
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return job_.has_value() || stopping_; });
    if (!job_.has_value()) return;
    lock.unlock();
    std::optional<Span> span(std::in_place, &label);
    auto saved = save(fs_, root_, job_->info, job_->tensors, options_);
    Status status = saved.ok() ? prune_checkpoints(fs_, root_, job_->info.step) : Status(saved.error());
    span.reset();
    lock.lock();
    if (saved.ok()) saved_ = std::move(saved).value();
    status_ = std::move(status);
    job_.reset();
    changed_.notify_all();
  }
}

}  // namespace ostro::checkpoint
