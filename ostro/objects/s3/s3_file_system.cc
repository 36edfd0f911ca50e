#include "ostro/objects/s3/s3_file_system.h"

#include <algorithm>
#include <functional>
#include <map>

#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/lfs_pointer.h"
#include "ostro/io/read/read_ahead.h"
#include "ostro/objects/s3/object_lock.h"
#include "ostro/objects/s3/object_writer.h"
#include "ostro/objects/s3/pending_writes.h"

namespace ostro::objects {
namespace {

// S3 gives whole seconds, so a hash of the ETag fills the fraction: content that changes twice in a second
// still has two times.
io::FileInfo file_info(const S3Object& object) {
  const Sha256Digest digest = sha256(object.etag);
  int64_t fraction = 0;
  for (size_t i = 0; i < 4; ++i) fraction = fraction << 8 | digest[i];
  return {object.size, object.modified * 1'000'000'000 + fraction % 1'000'000'000, false};
}

// `end` is called when the lock is given back.
class HeldLock final : public io::FileLock {
 public:
  HeldLock(std::shared_ptr<ObjectLock> lock, std::function<void(ObjectLock&)> end)
      : lock_(std::move(lock)), end_(std::move(end)) {}
  ~HeldLock() override { end_(*lock_); }

 private:
  std::shared_ptr<ObjectLock> lock_;
  std::function<void(ObjectLock&)> end_;
};

constexpr int kRemovalsAtATime = 8;        // removals at a time
constexpr int64_t kOldUpload = 24 * 3600;  // seconds

class S3File final : public io::RandomAccessFile {
 public:
  S3File(S3Client& client, S3Path path, S3Object object, std::shared_ptr<io::ReadAheadBudget> budget)
      : path_(path.url()),
        object_(object),
        ahead_(object.size,
               [&client, path, object](int64_t offset, std::span<std::byte> out, std::stop_token stop) {
                 return client.get(path, offset, out, object, std::move(stop));
               },
               {.budget = std::move(budget)}) {}

  Status read(int64_t offset, std::span<std::byte> out) const override {
    OSTRO_CHECK(offset >= 0, "{}: read at offset {}", path_, offset);
    const int64_t end = offset + static_cast<int64_t>(out.size());
    if (end > object_.size)
      return corrupt(fmt::format("{}: ends at byte {}, but bytes [{}, {}) were expected", path_, object_.size,
                                 offset, end));
    return ahead_.read(offset, out);
  }
  int64_t size() const override { return object_.size; }
  const std::string& path() const override { return path_; }

 private:
  std::string path_;
  S3Object object_;
  mutable io::ReadAhead ahead_;
};

class S3FileSystem : public io::FileSystem {
 public:
  S3FileSystem(S3Options options, HttpClient& http, RetryClock& clock)
      : client_(std::move(options), http, clock) {
    client_.ask_before_changes([this](const S3Path& path, bool adds) { return may_change(path, adds); });
  }

  Result<std::unique_ptr<io::RandomAccessFile>> open(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    RETURN_IF_ERROR(pending_.send(parsed.url(), false));
    ASSIGN_OR_RETURN(const S3Object object, client_.head(parsed));
    auto file = std::make_unique<S3File>(client_, parsed, object, budget_);
    RETURN_IF_ERROR(io::refuse_lfs_pointer(*file));
    return std::unique_ptr<io::RandomAccessFile>(std::move(file));
  }

  // An object of this key is a file; otherwise a key below it makes the path a directory.
  Result<io::FileInfo> stat(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    RETURN_IF_ERROR(pending_.send(parsed.url(), /*below=*/true));
    Status absent;
    if (!parsed.key.empty()) {
      const Result<S3Object> object = client_.head(parsed);
      if (object.ok()) return file_info(*object);
      if (object.error().code() != ErrorCode::kNotFound) return object.error();
      absent = object.error();
    }
    ASSIGN_OR_RETURN(const S3Listing listing, client_.list(parsed, /*first_only=*/true));
    if (!absent.ok() && listing.files.empty() && listing.folders.empty()) return absent.error();
    return io::FileInfo{.is_directory = true};
  }

  Result<std::vector<io::DirEntry>> list(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    RETURN_IF_ERROR(pending_.send(parsed.url(), /*below=*/true));
    ASSIGN_OR_RETURN(const S3Listing listing, client_.list(parsed));
    std::vector<io::DirEntry> entries;
    for (const S3Listing::File& file : listing.files)
      entries.push_back({file.name, false, file_info(file.object)});
    for (const std::string& name : listing.folders) entries.push_back({name, true});
    if (entries.empty() && !parsed.key.empty()) return not_found(fmt::format("{}: no such directory", path));
    std::sort(entries.begin(), entries.end(),
              [](const io::DirEntry& a, const io::DirEntry& b) { return a.name < b.name; });
    return entries;
  }

  bool is_object_store(const std::string&) override { return true; }

  Result<std::unique_ptr<io::WritableFile>> create(const std::string& path) override {
    return new_object(path, /*once=*/false);
  }
  Result<std::unique_ptr<io::WritableFile>> create_once(const std::string& path) override {
    return new_object(path, /*once=*/true);
  }
  Result<std::unique_ptr<io::WritableFile>> open_append(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    ASSIGN_OR_RETURN(auto object, pending_.growing(parsed.url()));
    return appending_file(std::move(object));
  }
  Status write_later(const std::string& path, std::string_view content) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    pending_.later(parsed.url(), std::string(content));
    return {};
  }

  Status truncate(const std::string& path, int64_t size) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    ASSIGN_OR_RETURN(const auto object, pending_.growing(parsed.url()));
    return object->truncate(size);
  }

  // Of one object: copied, then removed.
  Status rename(const std::string& from, const std::string& to) override {
    if (!from.starts_with("s3://") || !to.starts_with("s3://"))
      return unsupported(
          fmt::format("{}: cannot rename to {}: only one of them is in an object store", from, to));
    ASSIGN_OR_RETURN(const S3Path source, object_path(from));
    ASSIGN_OR_RETURN(const S3Path target, object_path(to));
    RETURN_IF_ERROR(pending_.send(source.url(), false));
    pending_.forget(source.url());
    pending_.forget(target.url());
    const Status copied = client_.copy(source, target);
    if (!copied.ok() && copied.error().code() == ErrorCode::kNotFound) {
      const auto info = stat(from);
      if (info.ok() && info->is_directory)
        return unsupported(
            fmt::format("{}: cannot rename to {}: an object store cannot rename a folder; write to a local "
                        "directory, and "
                        "copy it when it is finished",
                        from, to));
    }
    RETURN_IF_ERROR(copied);
    return client_.remove(source);
  }

  Status remove(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    pending_.forget(parsed.url());
    return client_.remove(parsed);
  }

  Status remove_all(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    std::vector<S3Path> objects = {parsed};
    RETURN_IF_ERROR(collect(parsed, objects));
    return parallel_for(static_cast<int64_t>(objects.size()), kRemovalsAtATime, [&](int64_t i) -> Status {
      const S3Path& object = objects[static_cast<size_t>(i)];
      pending_.forget(object.url());
      return client_.remove(object);
    });
  }

  // Folders are there when something lies in them.
  Status make_dirs(const std::string&) override { return {}; }
  Status sync_dir(const std::string& path) override { return sync_tree(path); }
  Status sync_tree(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    return pending_.send(parsed.url(), /*below=*/true);
  }

  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path, std::string_view owner) override {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    ASSIGN_OR_RETURN(auto lock, ObjectLock::take(client_, parsed, owner));
    {
      const std::lock_guard guard(mutex_);
      std::erase_if(locks_, [](const auto& one) { return one.expired(); });
      locks_.push_back(lock);
      lost_.erase(parsed.url());
    }
    // What processes that were killed have left.
    if (const Status aborted = client_.abort_old_uploads(*parse_s3_path(lock->folder()), kOldUpload);
        !aborted.ok())
      log_info(fmt::format("old uploads are left as they are: {}", aborted.error().message()));
    return std::unique_ptr<io::FileLock>(
        std::make_unique<HeldLock>(std::move(lock), [this](ObjectLock& held) { give_back(held); }));
  }

 private:
  static Result<S3Path> object_path(const std::string& path) {
    ASSIGN_OR_RETURN(S3Path parsed, parse_s3_path(path));
    if (parsed.key.empty()) return invalid_argument(fmt::format("{}: names no object of the bucket", path));
    return parsed;
  }

  Result<std::unique_ptr<io::WritableFile>> new_object(const std::string& path, bool once) {
    ASSIGN_OR_RETURN(const S3Path parsed, object_path(path));
    pending_.forget(parsed.url());
    return std::unique_ptr<io::WritableFile>(std::make_unique<ObjectWriter>(client_, parsed, once));
  }

  Status collect(const S3Path& folder, std::vector<S3Path>& objects) {
    ASSIGN_OR_RETURN(const S3Listing listing, client_.list(folder));
    for (const auto& file : listing.files) objects.push_back({folder.bucket, folder.key + "/" + file.name});
    for (const std::string& name : listing.folders)
      RETURN_IF_ERROR(collect({folder.bucket, folder.key + "/" + name}, objects));
    return {};
  }

  void give_back(ObjectLock& lock) {
    lock.release();
    const Status lost = lock.lost();
    if (lost.ok()) return;
    {
      const std::lock_guard guard(mutex_);
      lost_.insert_or_assign(lock.path().url(), Lost{lock.folder(), lost.error()});
    }
    pending_.drop(lock.folder(), lost.error());
  }

  // A process that has lost the lock of a folder changes nothing more below it, until it takes that lock
  // again. While it holds the lost one, it does not add anything there either; later it may, as a worker that
  // led once and follows now.
  Status may_change(const S3Path& path, bool adds) {
    const std::string url = path.url();
    std::vector<std::shared_ptr<ObjectLock>> held;
    {
      const std::lock_guard guard(mutex_);
      for (const auto& [lock, lost] : lost_)
        if (!adds && url.starts_with(lost.folder + "/")) return lost.why;
      for (const auto& one : locks_)
        if (auto lock = one.lock(); lock != nullptr && url.starts_with(lock->folder() + "/"))
          held.push_back(std::move(lock));
    }
    for (const auto& lock : held) RETURN_IF_ERROR(lock->still_held());
    return {};
  }

  struct Lost {
    std::string folder;
    Error why;
  };

  S3Client client_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<ObjectLock>> locks_;
  std::map<std::string, Lost> lost_;  // by the URL of the lock
  PendingWrites pending_{client_};
  // Many shards of a store are open at once, and each is read sequentially for a while.
  std::shared_ptr<io::ReadAheadBudget> budget_ = std::make_shared<io::ReadAheadBudget>(int64_t{256} << 20);
};

// Owns the client and the clock that the file system refers to.
struct Connections {
  explicit Connections(const S3Options& options)
      : http(curl_client({.region = options.region,
                          .ca_bundle = options.ca_bundle,
                          .stall_seconds = options.stall_seconds})) {}
  std::unique_ptr<HttpClient> http;
};

class ConnectedS3FileSystem final : private Connections, public S3FileSystem {
 public:
  explicit ConnectedS3FileSystem(const S3Options& options)
      : Connections(options), S3FileSystem(options, *http, system_retry_clock()) {}
};

}  // namespace

std::unique_ptr<io::FileSystem> s3_file_system(S3Options options, HttpClient& http, RetryClock& clock) {
  return std::make_unique<S3FileSystem>(std::move(options), http, clock);
}

Result<std::unique_ptr<io::FileSystem>> s3_file_system_from_environment() {
  ASSIGN_OR_RETURN(const S3Options options, s3_options_of_process());
  return std::unique_ptr<io::FileSystem>(std::make_unique<ConnectedS3FileSystem>(options));
}

}  // namespace ostro::objects
