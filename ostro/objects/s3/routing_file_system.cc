#include "ostro/objects/s3/routing_file_system.h"

#include <mutex>

#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/s3_file_system.h"

namespace ostro::objects {
namespace {

// What to do where a path has a scheme that is not read.
std::string instead_of(std::string_view scheme, const std::string& path) {
  const std::string rest = path.substr(scheme.size());
  if (scheme == "gs://")
    return fmt::format(
        "gs:// is read through its S3 interface: write s3://{}, and set AWS_ENDPOINT_URL="
        "https://storage.googleapis.com and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to an HMAC key of "
        "the "
        "bucket's project; or copy it first: gcloud storage cp -r {} FOLDER",
        rest, path);
  if (scheme == "hf://" || path.starts_with("https://huggingface.co/"))
    return "files of the hub are not read from there; fetch them first: hf download NAME --local-dir FOLDER";
  return fmt::format("{} is not supported; use a local path or s3://, or fetch it first: curl -LO {}", scheme,
                     path);
}

class RoutingFileSystem final : public io::FileSystem {
 public:
  Result<std::unique_ptr<io::RandomAccessFile>> open(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->open(path);
  }
  Result<std::unique_ptr<io::WritableFile>> create(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->create(path);
  }
  Result<std::unique_ptr<io::WritableFile>> open_append(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->open_append(path);
  }
  Result<io::FileInfo> stat(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->stat(path);
  }
  Status truncate(const std::string& path, int64_t size) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->truncate(path, size);
  }
  Status rename(const std::string& from, const std::string& to) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(from));
    ASSIGN_OR_RETURN(io::FileSystem* const target, of(to));
    // S3 refuses a rename to it or from it
    return (io::path_scheme(from).empty() ? target : fs)->rename(from, to);
  }
  Status remove(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->remove(path);
  }
  Result<std::vector<io::DirEntry>> list(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->list(path);
  }
  Status make_dirs(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->make_dirs(path);
  }
  Status sync_dir(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->sync_dir(path);
  }
  Status sync_tree(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->sync_tree(path);
  }
  Result<std::unique_ptr<io::WritableFile>> create_once(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->create_once(path);
  }
  Status write_later(const std::string& path, std::string_view content) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->write_later(path, content);
  }
  Status remove_all(const std::string& path) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->remove_all(path);
  }
  bool is_object_store(const std::string& path) override { return io::path_scheme(path) == "s3://"; }
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path, std::string_view owner) override {
    ASSIGN_OR_RETURN(io::FileSystem* const fs, of(path));
    return fs->lock(path, owner);
  }

 private:
  Result<io::FileSystem*> of(const std::string& path) {
    const std::string_view scheme = io::path_scheme(path);
    if (scheme.empty()) return &io::local_file_system();
    if (scheme != "s3://") return unsupported(fmt::format("{}: {}", path, instead_of(scheme, path)));
    const std::lock_guard lock(mutex_);
    if (s3_ == nullptr) {
      auto made = s3_file_system_from_environment();
      if (!made.ok()) return made.error().with_context(path);
      s3_ = std::move(*made);
    }
    return s3_.get();
  }

  std::mutex mutex_;
  std::unique_ptr<io::FileSystem> s3_;
};

}  // namespace

io::FileSystem& default_file_system() {
  static RoutingFileSystem fs;
  return fs;
}

}  // namespace ostro::objects
