#include "ostro/objects/s3/appended_object.h"

#include <fmt/core.h>

#include <optional>

#include "ostro/base/log.h"
#include "ostro/objects/s3/write_id.h"

namespace ostro::objects {
namespace {

std::span<const std::byte> span_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class AppendingFile final : public io::WritableFile {
 public:
  explicit AppendingFile(std::shared_ptr<AppendedObject> object) : object_(std::move(object)) {}
  ~AppendingFile() override {
    if (object_ == nullptr) return;
    if (const Status sent = object_->publish(); !sent.ok()) log_warning(sent.error().message());
  }
  Status append(std::span<const std::byte> bytes) override { return object_->append(bytes); }
  Status sync() override { return object_->publish(); }
  Status close() override { return object_->publish(); }

 private:
  std::shared_ptr<AppendedObject> object_;
};

}  // namespace

std::unique_ptr<io::WritableFile> appending_file(std::shared_ptr<AppendedObject> object) {
  return std::make_unique<AppendingFile>(std::move(object));
}

Result<std::shared_ptr<AppendedObject>> AppendedObject::open(S3Client& client, const S3Path& path) {
  std::shared_ptr<AppendedObject> out(new AppendedObject(client, path));
  RETURN_IF_ERROR(out->load());
  return out;
}

Status AppendedObject::load() {
  const Result<S3Object> there = client_.head(path_);
  etag_.clear(), head_.clear(), size_ = 0;
  if (!there.ok()) return there.error().code() == ErrorCode::kNotFound ? Status() : Status(there.error());
  created_ = true;
  etag_ = there->etag;
  size_ = there->size;
  if (size_ >= kS3PartBytes) return {};
  head_.resize(static_cast<size_t>(size_));
  return client_.get(path_, 0, std::as_writable_bytes(std::span(head_)), *there);
}

Status AppendedObject::append(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(lost_);
  tail_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

bool AppendedObject::is_behind() const {
  const std::lock_guard lock(mutex_);
  return lost_.ok() && (!tail_.empty() || !created_);
}

void AppendedObject::end(const Error& why) {
  const std::lock_guard one_at_a_time(sending_);
  const std::lock_guard lock(mutex_);
  if (lost_.ok()) lost_ = io_error(why.message());
}

Status AppendedObject::publish() {
  const std::lock_guard one_at_a_time(sending_);
  // All answers to a write were lost, and now the server may answer again.
  if (!unsettled_.empty()) RETURN_IF_ERROR(find_done());
  // Several times only when an earlier write turns out to be done. What is appended meanwhile can wait.
  for (std::optional<int64_t> end;;) {
    std::string tail;
    {
      const std::lock_guard lock(mutex_);
      RETURN_IF_ERROR(lost_);
      if ((tail_.empty() || (end && size_ >= *end)) && created_) return {};
      tail = tail_;
    }
    if (!end) end = size_ + static_cast<int64_t>(tail.size());
    RETURN_IF_ERROR(send(tail));
  }
}

// Whether the object is of an unsettled write. If it is, none of the others can be done any more: they have
// the same condition.
Result<bool> AppendedObject::find_done() {
  const Result<S3Object> there = client_.head(path_);
  if (!there.ok()) {
    if (there.error().code() == ErrorCode::kNotFound) return false;
    return there.error();
  }
  for (const Attempt& one : unsettled_) {
    if (one.id != there->write_id) continue;
    done(Attempt(one), there->etag);
    return true;
  }
  return false;
}

void AppendedObject::done(const Attempt& what, std::string etag) {
  const std::lock_guard lock(mutex_);
  etag_ = std::move(etag);
  size_ = what.size;
  head_ = what.head;
  tail_.erase(0, what.sent);
  created_ = true;
  unsettled_.clear();
}

Status AppendedObject::attempt(Attempt what, const std::function<Result<std::string>()>& put) {
  unsettled_.push_back(what);
  Result<std::string> etag = put();
  if (etag.ok()) {
    done(what, std::move(etag).value());
    return {};
  }
  if (etag.error().code() != ErrorCode::kBusy) return etag.error();
  ASSIGN_OR_RETURN(const bool was_own, find_done());
  if (was_own) return {};
  // kBusy says of a lock that one may wait for it; this will not pass.
  const std::lock_guard lock(mutex_);
  lost_ = io_error(etag.error().message());
  return lost_;
}

Status AppendedObject::send(const std::string& tail) {
  Attempt what{new_write_id(), size_ + static_cast<int64_t>(tail.size()), "", tail.size()};
  if (size_ >= kS3PartBytes) {
    const S3Object there{.size = size_, .modified = 0, .etag = etag_};
    return attempt(what, [&] { return client_.extend(path_, there, span_of(tail), what.id); });
  }
  const std::string whole = head_ + tail;
  if (what.size < kS3PartBytes) what.head = whole;
  const S3Condition condition =
      etag_.empty() ? S3Condition{S3Condition::kAbsent} : S3Condition{S3Condition::kUnchanged, etag_};
  return attempt(what, [&] { return client_.put(path_, span_of(whole), condition, what.id); });
}

Status AppendedObject::truncate(int64_t size) {
  RETURN_IF_ERROR(publish());
  const std::lock_guard one_at_a_time(sending_);
  while (size != size_) {
    if (size > size_)
      return invalid_argument(
          fmt::format("{}: has {} bytes, and cannot be cut to {}", path_.url(), size_, size));
    std::string kept(static_cast<size_t>(size), '\0');
    RETURN_IF_ERROR(client_.get(path_, 0, std::as_writable_bytes(std::span(kept)),
                                {.size = size_, .modified = 0, .etag = etag_}));
    const Attempt what{new_write_id(), size, size < kS3PartBytes ? kept : "", 0};
    RETURN_IF_ERROR(attempt(
        what, [&] { return client_.put(path_, span_of(kept), {S3Condition::kUnchanged, etag_}, what.id); }));
  }
  return {};
}

}  // namespace ostro::objects
