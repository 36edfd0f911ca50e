#include "ostro/objects/s3/object_writer.h"

#include <fmt/core.h>

#include "ostro/objects/s3/write_id.h"

namespace ostro::objects {
namespace {

constexpr size_t kMostInMemory = size_t{64} << 20;

// kBusy says of a lock that one may wait for it; other bytes in this object's place will not pass.
Status lasting(const Result<std::string>& written) {
  if (written.ok()) return {};
  const bool taken = written.error().code() == ErrorCode::kBusy;
  return taken ? Status(io_error(written.error().message())) : Status(written.error());
}

}  // namespace

ObjectWriter::~ObjectWriter() {
  if (!upload_.empty() && !published_) client_.abort_upload(path_, upload_);
}

Status ObjectWriter::append(std::span<const std::byte> bytes) {
  RETURN_IF_ERROR(status_);
  if (published_ && !bytes.empty())
    return unsupported(fmt::format(
        "{}: was finished when it was synced; open it to append, which an object store takes for a new write",
        path_.url()));
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() <= kMostInMemory && upload_.empty()) return {};
  size_t sent = 0;
  const auto part = static_cast<size_t>(kS3PartBytes);
  for (; status_.ok() && buffer_.size() - sent >= part; sent += part)
    status_ = send_part(std::span(buffer_).subspan(sent, part));
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(sent));
  return status_;
}

Status ObjectWriter::send_part(std::span<const std::byte> bytes) {
  if (upload_.empty()) {
    write_id_ = new_write_id();
    ASSIGN_OR_RETURN(upload_, client_.begin_upload(path_, write_id_));
  }
  ASSIGN_OR_RETURN(std::string etag,
                   client_.put_part(path_, upload_, static_cast<int64_t>(parts_.size()) + 1, bytes));
  parts_.push_back(std::move(etag));
  return {};
}

Status ObjectWriter::sync() {
  RETURN_IF_ERROR(status_);
  if (!published_) status_ = publish();
  return status_;
}

Status ObjectWriter::publish() {
  const S3Condition condition{once_ ? S3Condition::kAbsent : S3Condition::kAlways};
  if (upload_.empty()) {
    RETURN_IF_ERROR(lasting(client_.put(path_, buffer_, condition, content_write_id(buffer_))));
  } else {
    if (!buffer_.empty()) RETURN_IF_ERROR(send_part(buffer_));
    RETURN_IF_ERROR(lasting(client_.finish_upload(path_, upload_, parts_, condition, write_id_)));
  }
  published_ = true;
  buffer_ = {};
  return {};
}

}  // namespace ostro::objects
