#include "ostro/io/s3/s3_file_system.h"

#include <algorithm>
#include <cstdlib>

#include "ostro/base/sha256.h"
#include "ostro/io/files/lfs_pointer.h"
#include "ostro/io/read/read_ahead.h"

namespace ostro::io {
namespace {

// S3 gives whole seconds, so a hash of the ETag fills the fraction: content that changes twice in a second
// still has two times.
FileInfo file_info(const S3Object& object) {
  const Sha256Digest digest = sha256(object.etag);
  int64_t fraction = 0;
  for (size_t i = 0; i < 4; ++i) fraction = fraction << 8 | digest[i];
  return {object.size, object.modified * 1'000'000'000 + fraction % 1'000'000'000, false};
}

Error read_only(std::string_view what, const std::string& path) {
  return unsupported(
      fmt::format("{}: cannot {}: s3:// can only be read (an object store has no appends, atomic renames or "
                  "locks); write to a local directory, and copy it when it is finished",
                  path, what));
}

class S3File final : public RandomAccessFile {
 public:
  S3File(S3Client& client, S3Path path, S3Object object, std::shared_ptr<ReadAheadBudget> budget)
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
  mutable ReadAhead ahead_;
};

class S3FileSystem : public FileSystem {
 public:
  S3FileSystem(S3Options options, HttpClient& http, RetryClock& clock)
      : client_(std::move(options), http, clock) {}

  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    if (parsed.key.empty()) return invalid_argument(fmt::format("{}: names no object of the bucket", path));
    ASSIGN_OR_RETURN(const S3Object object, client_.head(parsed));
    auto file = std::make_unique<S3File>(client_, parsed, object, budget_);
    RETURN_IF_ERROR(refuse_lfs_pointer(*file));
    return std::unique_ptr<RandomAccessFile>(std::move(file));
  }

  // An object of this key is a file; otherwise a key below it makes the path a directory.
  Result<FileInfo> stat(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    Status absent;
    if (!parsed.key.empty()) {
      const Result<S3Object> object = client_.head(parsed);
      if (object.ok()) return file_info(*object);
      if (object.error().code() != ErrorCode::kNotFound) return object.error();
      absent = object.error();
    }
    ASSIGN_OR_RETURN(const S3Listing listing, client_.list(parsed, /*first_only=*/true));
    if (!absent.ok() && listing.files.empty() && listing.folders.empty()) return absent.error();
    return FileInfo{.is_directory = true};
  }

  Result<std::vector<DirEntry>> list(const std::string& path) override {
    ASSIGN_OR_RETURN(const S3Path parsed, parse_s3_path(path));
    ASSIGN_OR_RETURN(const S3Listing listing, client_.list(parsed));
    std::vector<DirEntry> entries;
    for (const S3Listing::File& file : listing.files)
      entries.push_back({file.name, false, file_info(file.object)});
    for (const std::string& name : listing.folders) entries.push_back({name, true});
    if (entries.empty() && !parsed.key.empty()) return not_found(fmt::format("{}: no such directory", path));
    std::sort(entries.begin(), entries.end(),
              [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
    return entries;
  }

  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    return read_only("create", path);
  }
  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    return read_only("write", path);
  }
  Status truncate(const std::string& path, int64_t) override { return read_only("truncate", path); }
  Status rename(const std::string& from, const std::string& to) override {
    return read_only(fmt::format("rename to {}", to), from);
  }
  Status remove(const std::string& path) override { return read_only("remove", path); }
  Status make_dirs(const std::string& path) override { return read_only("make directory", path); }
  Status sync_dir(const std::string& path) override { return read_only("sync directory", path); }
  Status sync_tree(const std::string& path) override { return read_only("sync everything below", path); }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view) override {
    return read_only("lock", path);
  }

 private:
  S3Client client_;
  // Many shards of a store are open at once, and each is read sequentially for a while.
  std::shared_ptr<ReadAheadBudget> budget_ = std::make_shared<ReadAheadBudget>(int64_t{256} << 20);
};

// Owns the client and the clock that the file system refers to.
struct Connections {
  explicit Connections(const S3Options& options)
      : http(curl_client({.access_key = options.access_key,
                          .secret_key = options.secret_key,
                          .region = options.region,
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

std::unique_ptr<FileSystem> s3_file_system(S3Options options, HttpClient& http, RetryClock& clock) {
  return std::make_unique<S3FileSystem>(std::move(options), http, clock);
}

Result<std::unique_ptr<FileSystem>> s3_file_system_from_environment() {
  ASSIGN_OR_RETURN(const S3Options options, s3_options([](const char* name) -> std::string {
                     const char* value = std::getenv(name);
                     return value == nullptr ? "" : value;
                   }));
  return std::unique_ptr<FileSystem>(std::make_unique<ConnectedS3FileSystem>(options));
}

}  // namespace ostro::io
