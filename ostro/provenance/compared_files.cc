#include "ostro/provenance/compared_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::provenance {

class ComparedFiles::File final : public io::WritableFile {
 public:
  File(ComparedFiles& owner, std::string name, std::unique_ptr<io::RandomAccessFile> there)
      : owner_(owner), name_(std::move(name)), there_(std::move(there)) {}

  Status append(std::span<const std::byte> bytes) override {
    ComparedFile& file = owner_.files_[name_];
    if (file.written == 0) file.begin.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    constexpr size_t kPiece = size_t{1} << 20;
    for (size_t at = 0; at < bytes.size(); at += kPiece)
      RETURN_IF_ERROR(compare(bytes.subspan(at, std::min(kPiece, bytes.size() - at)), file));
    return {};
  }
  Status sync() override { return {}; }
  Status close() override { return {}; }

 private:
  Status compare(std::span<const std::byte> bytes, ComparedFile& file) {
    const int64_t at = file.written;
    file.written += static_cast<int64_t>(bytes.size());
    owner_.compared_ += static_cast<int64_t>(bytes.size());
    if (owner_.on_compared_) owner_.on_compared_(owner_.compared_);
    if (!there_) return {};
    const auto count =
        static_cast<size_t>(std::clamp<int64_t>(there_->size() - at, 0, static_cast<int64_t>(bytes.size())));
    memory_.resize(count);
    RETURN_IF_ERROR(there_->read(std::min(at, there_->size()), memory_));
    const auto [here, there] = std::mismatch(bytes.begin(), bytes.begin() + static_cast<int64_t>(count),
                                             memory_.begin(), memory_.end());
    if (here == bytes.end()) return {};
    if (there != memory_.end() && file.first_difference < 0)
      file.first_difference = at + (here - bytes.begin());
    if (owner_.different_) owner_.different_(name_, at, bytes, memory_);
    return {};
  }

  ComparedFiles& owner_;
  const std::string name_;
  const std::unique_ptr<io::RandomAccessFile> there_;  // null: there is no such file
  std::vector<std::byte> memory_;
};

ComparedFiles::ComparedFiles(io::FileSystem& base, const std::string& out, std::string directory,
                             OnDifference different, OnCompared compared)
    : base_(base),
      out_(io::clean_path(out)),
      directory_(std::move(directory)),
      different_(std::move(different)),
      on_compared_(std::move(compared)) {}

ComparedFiles::~ComparedFiles() = default;

bool ComparedFiles::is_out(const std::string& path) const {
  const std::string clean = io::clean_path(path);
  return clean == out_ || clean.starts_with(out_ + "/");
}

Status ComparedFiles::only_out(const std::string& path) const {
  if (is_out(path)) return {};
  return unsupported(fmt::format("{}: files are only compared here, nothing is written", path));
}

Result<std::unique_ptr<io::RandomAccessFile>> ComparedFiles::open(const std::string& path) {
  if (is_out(path)) return not_found(fmt::format("{}: what is compared cannot be read", path));
  return base_.open(path);
}

Result<std::unique_ptr<io::WritableFile>> ComparedFiles::create(const std::string& path) {
  RETURN_IF_ERROR(only_out(path));
  std::string name = io::clean_path(path).substr(out_.size() + 1);
  const std::string temporary = io::temporary_path("");
  if (name.ends_with(temporary)) name.resize(name.size() - temporary.size());
  files_[name] = ComparedFile{0, -1, -1, ""};
  auto there = base_.open(io::join_path(directory_, name));
  if (!there.ok() && there.error().code() != ErrorCode::kNotFound) return there.error();
  if (!there.ok()) return std::unique_ptr<io::WritableFile>(new File(*this, std::move(name), nullptr));
  files_[name].there = (*there)->size();
  return std::unique_ptr<io::WritableFile>(new File(*this, std::move(name), std::move(*there)));
}

Result<std::unique_ptr<io::WritableFile>> ComparedFiles::open_append(const std::string& path) {
  return unsupported(fmt::format("{}: a file that is compared is written from its beginning", path));
}

Result<io::FileInfo> ComparedFiles::stat(const std::string& path) {
  if (is_out(path)) return not_found(fmt::format("{}: what is compared is not there", path));
  return base_.stat(path);
}

Status ComparedFiles::truncate(const std::string& path, int64_t /*size*/) {
  return unsupported(fmt::format("{}: a file that is compared is not cut", path));
}

Status ComparedFiles::rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(only_out(from));
  return only_out(to);
}

Status ComparedFiles::remove(const std::string& path) { return only_out(path); }

Result<std::vector<io::DirEntry>> ComparedFiles::list(const std::string& path) {
  if (is_out(path)) return std::vector<io::DirEntry>();
  return base_.list(path);
}

Status ComparedFiles::make_dirs(const std::string& path) { return only_out(path); }
Status ComparedFiles::sync_dir(const std::string& path) { return only_out(path); }
Status ComparedFiles::sync_tree(const std::string& path) { return only_out(path); }

Result<std::unique_ptr<io::FileLock>> ComparedFiles::lock(const std::string& path,
                                                          std::string_view /*owner*/) {
  return unsupported(fmt::format("{}: no lock is taken where files are compared", path));
}

}  // namespace ostro::provenance
