#include "ostro/io/s3/appended_object.h"

#include <fmt/core.h>

#include "ostro/base/log.h"
#include "ostro/io/s3/write_id.h"

namespace ostro::io {
namespace {

constexpr int64_t kMostCopied = int64_t{5} << 30;  // in one part

class AppendingFile final : public WritableFile {
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

std::unique_ptr<WritableFile> appending_file(std::shared_ptr<AppendedObject> object) {
  return std::make_unique<AppendingFile>(std::move(object));
}

Result<std::shared_ptr<AppendedObject>> AppendedObject::open(S3Client& client, const S3Path& path,
                                                             std::function<Status()> may_write) {
  std::shared_ptr<AppendedObject> out(new AppendedObject(client, path, std::move(may_write)));
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

Status AppendedObject::publish() {
  const std::lock_guard one_at_a_time(sending_);
  RETURN_IF_ERROR(settle());
  std::string tail;
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(lost_);
    if (tail_.empty() && created_) return {};
    tail = tail_;
  }
  RETURN_IF_ERROR(may_write_());
  const Status sent = send(tail);
  const std::lock_guard lock(mutex_);
  // kBusy says of a lock that one may wait for it; this will not pass.
  if (!sent.ok() && sent.error().code() == ErrorCode::kBusy) lost_ = io_error(sent.error().message());
  RETURN_IF_ERROR(lost_);
  RETURN_IF_ERROR(sent);
  unsettled_.clear();
  tail_.erase(0, tail.size());
  created_ = true;
  return {};
}

// All answers to a write were lost, and now the server answers again.
Status AppendedObject::settle() {
  if (unsettled_.empty()) return {};
  const Result<S3Object> there = client_.head(path_);
  if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return there.error();
  if (there.ok() && there->write_id == unsettled_) {
    const std::lock_guard lock(mutex_);
    etag_ = there->etag;
    size_ = there->size;
    head_ = size_ < kS3PartBytes ? head_ + tail_.substr(0, unsettled_bytes_) : "";
    tail_.erase(0, unsettled_bytes_);
    created_ = true;
  }
  unsettled_.clear();
  return {};
}

Status AppendedObject::send(const std::string& tail) {
  unsettled_ = new_write_id();
  unsettled_bytes_ = tail.size();
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  if (size_ >= kS3PartBytes) {
    if (size_ > kMostCopied)
      return unsupported(
          fmt::format("{}: has {} bytes; an object of more than 5 GiB cannot grow here", path_.url(), size_));
    ASSIGN_OR_RETURN(etag_, client_.extend(path_, etag_, bytes(tail), unsettled_));
  } else {
    const std::string whole = head_ + tail;
    const S3Condition condition =
        etag_.empty() ? S3Condition{S3Condition::kAbsent} : S3Condition{S3Condition::kUnchanged, etag_};
    ASSIGN_OR_RETURN(etag_, client_.put(path_, bytes(whole), condition, unsettled_));
    head_ = static_cast<int64_t>(whole.size()) < kS3PartBytes ? whole : "";
  }
  size_ += static_cast<int64_t>(tail.size());
  return {};
}

Status AppendedObject::truncate(int64_t size) {
  RETURN_IF_ERROR(publish());
  const std::lock_guard one_at_a_time(sending_);
  if (size == size_) return {};
  if (size > size_)
    return invalid_argument(
        fmt::format("{}: has {} bytes, and cannot be cut to {}", path_.url(), size_, size));
  RETURN_IF_ERROR(may_write_());
  std::string kept(static_cast<size_t>(size), '\0');
  RETURN_IF_ERROR(client_.get(path_, 0, std::as_writable_bytes(std::span(kept)),
                              {.size = size_, .modified = 0, .etag = etag_}));
  const auto cut =
      client_.put(path_, std::as_bytes(std::span(kept)), {S3Condition::kUnchanged, etag_}, new_write_id());
  if (!cut.ok()) return cut.error();
  etag_ = *cut;
  size_ = size;
  head_ = size < kS3PartBytes ? kept : "";
  return {};
}

}  // namespace ostro::io
