#include "ostro/objects/s3/object_lock.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "ostro/base/log.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/write_id.h"

namespace ostro::objects {
namespace {

constexpr int64_t kMostLockBytes = 10000;
constexpr int64_t kLookMs = 1000;  // between two looks at a lock that another process may hold

struct Found {
  S3Object object;
  LockText text;
};

// kNotFound: there is no lock yet. Reads again when it changes meanwhile.
Result<Found> look(S3Client& client, const S3Path& path) {
  for (int i = 0;; ++i) {
    ASSIGN_OR_RETURN(const S3Object object, client.head(path));
    if (object.size > kMostLockBytes)
      return corrupt(fmt::format("{}: has {} bytes; it is no lock", path.url(), object.size));
    std::string text(static_cast<size_t>(object.size), '\0');
    const Status read = client.get(path, 0, std::as_writable_bytes(std::span(text)), object);
    if (read.ok()) return Found{object, parse_lock_text(text)};
    const bool changed = read.error().code() == ErrorCode::kCorrupt;
    if (!changed || i >= 5) return read.error();
  }
}

// Whether the server does what a lock depends on. Some servers and proxies take a conditional write like any
// other, and then each of two processes believes that it has the lock. `text`: of the lock, which was taken
// by the write `id`. Error: kUnsupported, with what to do.
Status check_server(S3Client& client, const S3Path& path, const std::string& text, const std::string& id) {
  const std::string& endpoint = client.options().endpoint;
  const auto refuse = [&](const std::string& what) {
    return unsupported(fmt::format(
        "{}: the server {} {}, so two processes could write one run at a time without seeing it; use a "
        "server with conditional writes, or a run directory on a disk (docs/reference/sources.md)",
        path.url(), endpoint.empty() ? "of the bucket" : endpoint, what));
  };
  ASSIGN_OR_RETURN(const S3Object there, client.head(path));
  if (there.write_id.empty()) return refuse("keeps no metadata (x-amz-meta-ostro-write)");
  if (there.write_id != id) return busy(fmt::format("{}: locked by another process", path.url()));
  constexpr const char* kNoTag = "\"00000000000000000000000000000000\"";
  for (const S3Condition& fails : {S3Condition{S3Condition::kAbsent}, {S3Condition::kUnchanged, kNoTag}}) {
    const auto written = client.put_lock(path, text, fails, new_write_id());
    if (written.ok())
      return refuse(
          fmt::format("ignores {}", fails.kind == S3Condition::kAbsent ? "If-None-Match" : "If-Match"));
    if (written.error().code() != ErrorCode::kBusy) return written.error();
  }
  return {};
}

// Waits until the holder has been silent for its lease. Ok: `found` may be replaced.
Status wait_for_end(S3Client& client, const S3Path& path, Found& found) {
  RetryClock& clock = client.clock();
  const auto held = [&] {
    return busy(fmt::format("{}: locked by {}", path.url(),
                            found.text.owner.empty() ? "another process" : found.text.owner));
  };
  const std::string first = found.object.etag;
  const int64_t begin = clock.now_ms();
  bool told = false;
  while (!found.text.free) {
    if (found.object.etag != first) return held();
    const HolderState state = state_of_process(found.text.process);
    if (state == HolderState::kAlive) return held();
    if (state == HolderState::kGone) return {};
    // How long it has not changed: by the server's clock, which gives whole seconds, or as seen from here.
    const int64_t by_server =
        found.object.answered == 0 ? 0 : (found.object.answered - found.object.modified - 1) * 1000;
    const int64_t silent = std::max(by_server, clock.now_ms() - begin), lease = found.text.lease * 1000;
    if (silent >= lease) return {};
    if (!told)
      log_info(fmt::format("{}: locked by {}, on another machine; waiting at most {} s for a sign of life",
                           path.url(), found.text.owner, (lease - silent + 999) / 1000));
    told = true;
    clock.sleep_ms(std::min(kLookMs, lease - silent), {});
    auto again = look(client, path);
    if (!again.ok() && again.error().code() == ErrorCode::kNotFound) return {};  // then the write decides
    if (!again.ok()) return again.error();
    found = std::move(*again);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<ObjectLock>> ObjectLock::take(S3Client& client, const S3Path& path,
                                                     std::string_view owner) {
  LockText text;
  text.owner = owner;
  text.lease = client.options().lease_seconds;
  text.process = this_process();
  S3Condition condition{S3Condition::kAbsent};
  auto found = look(client, path);
  if (found.ok()) {
    RETURN_IF_ERROR(wait_for_end(client, path, *found));
    condition = {S3Condition::kUnchanged, found->object.etag};
    text.term = found->text.term;
  } else if (found.error().code() != ErrorCode::kNotFound) {
    return found.error();
  }
  ++text.term;
  const int64_t since = client.clock().outside_ms();
  const std::string id = new_write_id();
  auto written = client.put_lock(path, text.text(), condition, id);
  if (!written.ok() && written.error().code() == ErrorCode::kBusy) {  // another was faster
    const auto winner = look(client, path);
    return busy(
        fmt::format("{}: locked by {}", path.url(), winner.ok() ? winner->text.owner : "another process"));
  }
  if (!written.ok()) return written.error();
  if (const Status fit = check_server(client, path, text.text(), id); !fit.ok()) {
    text.free = true;
    (void)client.put_lock(path, text.text(), {S3Condition::kUnchanged, *written}, new_write_id());
    return fit.error();
  }
  return std::shared_ptr<ObjectLock>(
      new ObjectLock(client, path, std::move(text), std::move(*written), since));
}

ObjectLock::ObjectLock(S3Client& client, S3Path path, LockText text, std::string etag, int64_t since)
    : client_(client),
      path_(std::move(path)),
      folder_(io::parent_path(path_.url())),
      lease_(text.lease),
      text_(std::move(text)),
      etag_(std::move(etag)),
      since_(since),
      keeper_([this] { keep(); }) {}

ObjectLock::~ObjectLock() { release(); }

void ObjectLock::keep() {
  std::unique_lock lock(end_mutex_);
  while (!ends_) {
    end_changed_.wait_for(lock, std::chrono::milliseconds(lease_ * 1000 / 3), [this] { return ends_; });
    if (ends_) return;
    lock.unlock();
    if (const Status renewed = renew(); !renewed.ok())
      log_warning(fmt::format("the lock was not renewed: {}", renewed.error().message()));
    lock.lock();
  }
}

Status ObjectLock::write(LockText text) {
  RETURN_IF_ERROR(lost_);
  const int64_t begin = client_.clock().outside_ms();
  // Whether the object is of a write of this lock to which no answer came. Others like it can then not be
  // done any more: their condition was the same.
  const auto is_own = [this](const S3Object& there) {
    if (std::find(unsettled_.begin(), unsettled_.end(), there.write_id) == unsettled_.end()) return false;
    etag_ = there.etag;
    unsettled_.clear();
    return true;
  };
  if (!unsettled_.empty()) {
    ASSIGN_OR_RETURN(const S3Object there, client_.head(path_));
    (void)is_own(there);
  }
  Result<Found> winner = not_found("");
  do {
    const std::string id = new_write_id();
    unsettled_.push_back(id);
    auto written = client_.put_lock(path_, text.text(), {S3Condition::kUnchanged, etag_}, id);
    if (written.ok()) {
      etag_ = std::move(*written);
      text_ = std::move(text);
      since_ = begin;
      unsettled_.clear();
      return {};
    }
    if (written.error().code() != ErrorCode::kBusy) return written.error();
    winner = look(client_, path_);
    if (!winner.ok() && winner.error().code() != ErrorCode::kNotFound) return winner.error();
  } while (winner.ok() && is_own(winner->object));  // a late one was done after all
  lost_ =
      io_error(fmt::format("{}: this process lost the lock to {}: it gave no sign of life for {} s. That one "
                           "goes on with the run; "
                           "this one must end",
                           path_.url(), winner.ok() ? winner->text.owner : "another process", lease_));
  return lost_;
}

Status ObjectLock::renew() {
  const std::lock_guard lock(mutex_);
  if (free_) return {};
  LockText text = text_;
  ++text.renewal;
  return write(std::move(text));
}

Status ObjectLock::still_held() {
  {
    const std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(lost_);
    // The rest of the lease is for the request that this lets through.
    if (free_ || client_.clock().outside_ms() - since_ < lease_ * 600) return {};
  }
  return renew();
}

Status ObjectLock::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void ObjectLock::release() {
  {
    const std::lock_guard lock(end_mutex_);
    ends_ = true;
  }
  end_changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  const std::lock_guard lock(mutex_);
  if (std::exchange(free_, true) || !lost_.ok()) return;
  LockText text = text_;
  text.free = true;
  if (const Status freed = write(std::move(text)); !freed.ok()) log_warning(freed.error().message());
}

}  // namespace ostro::objects
