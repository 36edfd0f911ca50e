#include "ostro/provenance/written_files.h"

#include <utility>

#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::provenance {
namespace {

// Appends to the file below, and hashes.
class HashedFile final : public io::WritableFile {
 public:
  HashedFile(std::unique_ptr<io::WritableFile> file, std::string name,
             std::shared_ptr<std::map<std::string, FileDigest>> files)
      : file_(std::move(file)), name_(std::move(name)), files_(std::move(files)) {}

  Status append(std::span<const std::byte> bytes) override {
    hash_.update(bytes);
    bytes_ += static_cast<int64_t>(bytes.size());
    return file_->append(bytes);
  }
  Status sync() override { return file_->sync(); }
  Status close() override {
    (*files_)[name_] = {bytes_, to_hex(hash_.finish())};
    return file_->close();
  }

 private:
  std::unique_ptr<io::WritableFile> file_;
  const std::string name_;
  std::shared_ptr<std::map<std::string, FileDigest>> files_;
  Sha256 hash_;
  int64_t bytes_ = 0;
};

}  // namespace

WrittenFiles::WrittenFiles(io::FileSystem& base, const std::string& directory)
    : ForwardingFileSystem(base),
      begin_(io::clean_path(directory) + "/"),
      files_(std::make_shared<std::map<std::string, FileDigest>>()) {}

Status WrittenFiles::before(Operation /*operation*/, const std::string& /*path*/) { return {}; }

std::unique_ptr<io::WritableFile> WrittenFiles::writing(std::unique_ptr<io::WritableFile> file,
                                                        const std::string& path) {
  std::string name = io::clean_path(path);
  if (!name.starts_with(begin_)) return file;
  name.erase(0, begin_.size());
  const std::string temporary = io::temporary_path("");
  if (name.ends_with(temporary)) name.resize(name.size() - temporary.size());
  return std::make_unique<HashedFile>(std::move(file), std::move(name), files_);
}

}  // namespace ostro::provenance
