#include "ostro/objects/s3/pending_writes.h"

#include <chrono>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/objects/s3/write_id.h"

namespace ostro::objects {
namespace {

constexpr std::chrono::seconds kInterval{4};  // for contents that come later
constexpr int kIntervalsOfGrowing = 3;

bool is_at(const std::string& path, const std::string& place, bool below) {
  return path == place ||
         (below && path.size() > place.size() && path.starts_with(place) && path[place.size()] == '/');
}

}  // namespace

void PendingWrites::start() {
  if (!sender_.joinable() && !ends_) sender_ = std::thread([this] { keep_sending(); });
}

// Objects that no file appends to any more, and of which nothing is left to be sent.
void PendingWrites::let_go_of_sent() {
  std::erase_if(growing_, [](const auto& entry) {
    return entry.second.use_count() == 1 && !entry.second->is_behind();
  });
}

Result<std::shared_ptr<AppendedObject>> PendingWrites::growing(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    let_go_of_sent();  // another process may have written them since
    if (const auto found = growing_.find(path); found != growing_.end()) return found->second;
  }
  ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
  ASSIGN_OR_RETURN(auto made, AppendedObject::open(client_, parsed));
  const std::lock_guard lock(mutex_);
  const auto [kept, is_new] = growing_.try_emplace(path, made);
  if (is_new) start();
  return kept->second;  // another thread may have been faster
}

void PendingWrites::later(const std::string& path, std::string content) {
  const std::lock_guard lock(mutex_);
  later_[path] = std::move(content);
  start();
}

void PendingWrites::forget(const std::string& path) {
  end(path, /*below=*/false,
      io_error(
          fmt::format("{}: this process removed, renamed or replaced it while it was open to append", path)));
}

void PendingWrites::drop(const std::string& folder, const Error& why) { end(folder, /*below=*/true, why); }

void PendingWrites::end(const std::string& place, bool below, const Error& why) {
  std::vector<std::shared_ptr<AppendedObject>> ended;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(later_, [&](const auto& entry) { return is_at(entry.first, place, below); });
    std::erase_if(growing_, [&](const auto& entry) {
      if (!is_at(entry.first, place, below)) return false;
      ended.push_back(entry.second);
      return true;
    });
  }
  for (const auto& object : ended) object->end(why);
}

Status PendingWrites::put(const std::string& path) {
  const std::lock_guard one_at_a_time(putting_);
  std::string content;
  {
    const std::lock_guard lock(mutex_);
    const auto found = later_.find(path);
    if (found == later_.end()) return {};
    content = found->second;
  }
  ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
  const auto bytes = std::as_bytes(std::span(content));
  RETURN_IF_ERROR(client_.put(parsed, bytes, {}, content_write_id(bytes)));
  const std::lock_guard lock(mutex_);
  if (const auto found = later_.find(path); found != later_.end() && found->second == content)
    later_.erase(found);
  return {};
}

Status PendingWrites::send(const std::string& place, bool below) {
  std::vector<std::shared_ptr<AppendedObject>> growing;
  std::vector<std::string> later;
  {
    const std::lock_guard lock(mutex_);
    let_go_of_sent();
    for (const auto& [path, object] : growing_)
      if (is_at(path, place, below)) growing.push_back(object);
    for (const auto& [path, content] : later_)
      if (is_at(path, place, below)) later.push_back(path);
  }
  Status first;
  const auto note = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const auto& object : growing) note(object->publish());
  for (const std::string& path : later) note(put(path));
  return first;
}

void PendingWrites::keep_sending() {
  std::unique_lock lock(mutex_);
  for (int i = 1; !ends_; ++i) {
    changed_.wait_for(lock, kInterval, [this] { return ends_; });
    std::vector<std::string> paths;
    for (const auto& [path, content] : later_) paths.push_back(path);
    for (const auto& [path, object] : growing_)
      if (i % kIntervalsOfGrowing == 0 && object->is_behind()) paths.push_back(path);
    for (const std::string& path : paths) {
      if (ends_) return;
      lock.unlock();
      const Status sent = send(path, /*below=*/false);
      lock.lock();
      if (sent.ok()) told_.erase(path);
      if (!sent.ok() && !ends_ && told_.insert(path).second)
        log_warning(fmt::format("not sent yet: {}", sent.error().message()));
    }
  }
}

void PendingWrites::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (!sender_.joinable()) return;
  client_.stop();
  sender_.join();
}

}  // namespace ostro::objects
