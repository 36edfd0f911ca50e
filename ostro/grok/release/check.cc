#include "ostro/grok/release/check.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/grok/pickle/opcodes.h"
#include "ostro/grok/release/contents.h"
#include "ostro/io/files/path.h"

namespace ostro::grok {
namespace {

// The number of bytes that are read before the results so far are saved.
constexpr int64_t kSaveBytes = int64_t{4} << 30;

class Checker {
 public:
  Checker(io::FileSystem& fs, const Release& release, const CheckOptions& options, ReleaseReport& report)
      : fs_(fs),
        release_(release),
        options_(options),
        report_(report),
        remembered_(fs, release.directory(), options.memory) {}

  void run() {
    for (const Leaf& leaf : report_.leaves) total_ += leaf.bytes;
    for (const Leaf& leaf : report_.leaves) {
      const int64_t before = done_;
      FileReport file;
      check(leaf, file);
      report_.files.push_back(std::move(file));
      advance(leaf.bytes - (done_ - before));
    }
    if (unsaved_bytes_ > 0) save();
  }

 private:
  void check(const Leaf& leaf, FileReport& report) {
    const std::string path = io::join_path(release_.directory(), leaf.file);
    const auto info = fs_.stat(path);
    if (!info.ok()) {
      if (info.error().code() != ErrorCode::kNotFound)
        report = {FileState::kWrong, 0, info.error().message(), {}};
      return;
    }
    report.bytes = info->size;
    const auto tensor = release_.open_tensor(leaf);
    if (!tensor.ok()) {
      // A file that is only too short begins well.
      const bool ends = tensor.error().code() == ErrorCode::kCorrupt && info->size < leaf.bytes &&
                        info->size > 0 && begins_well(path);
      report.state = ends || info->size == 0 ? FileState::kShort : FileState::kWrong;
      report.error = report.state == FileState::kWrong
                         ? tensor.error().message()
                         : fmt::format("{}: {} bytes of {}", path, info->size, leaf.bytes);
      return;
    }
    report.state = FileState::kWhole;
    if (options_.contents) check_contents(leaf, path, *info, tensor->stored(), report);
  }

  // True if the file's first bytes, as many as there are, are those of a pickle in a frame.
  bool begins_well(const std::string& path) const {
    const auto file = fs_.open(path);
    std::byte head[3], wanted[3] = {std::byte{kProto}, std::byte{4}, std::byte{kFrame}};
    if (!file.ok()) return false;
    const auto size = static_cast<size_t>(std::min<int64_t>((*file)->size(), std::size(head)));
    return (*file)->read(0, std::span(head).first(size)).ok() && std::equal(head, head + size, wanted);
  }

  void check_contents(const Leaf& leaf, const std::string& path, const io::FileInfo& info,
                      const StoredTensor& stored, FileReport& report) {
    const Contents* known = remembered_.find(leaf.file, info);
    Contents found;
    if (known != nullptr) {
      found = *known;
    } else {
      const auto file = fs_.open(path);
      auto contents = file.ok() ? read_contents(**file, stored, [this](int64_t bytes) { advance(bytes); })
                                : Result<Contents>(file.error());
      if (!contents.ok()) {
        report.state = FileState::kWrong;
        report.error = contents.error().message();
        return;
      }
      found = std::move(*contents);
      remembered_.add(leaf.file, info, found);
      report_.bytes_read += info.size;
      unsaved_bytes_ += info.size;
      if (unsaved_bytes_ >= kSaveBytes) save();
    }
    report.sha256 = found.sha256;
    if (!found.error.empty()) {
      report.state = FileState::kWrong;
      report.error = fmt::format("{}: {}", path, found.error);
    }
  }

  // The directory may be read-only; then the results count, but are not saved.
  void save() {
    unsaved_bytes_ = 0;
    if (cannot_save_) return;
    const Status saved = remembered_.save();
    cannot_save_ = !saved.ok();
    if (cannot_save_)
      log_warning(fmt::format("the results cannot be saved, so the next check reads all files again: {}",
                              saved.error().message()));
  }

  void advance(int64_t bytes) {
    done_ += bytes;
    if (options_.progress) options_.progress(std::min(done_, total_), total_);
  }

  io::FileSystem& fs_;
  const Release& release_;
  const CheckOptions& options_;
  ReleaseReport& report_;
  RememberedContents remembered_;
  int64_t done_ = 0, total_ = 0, unsaved_bytes_ = 0;
  bool cannot_save_ = false;
};

}  // namespace

int64_t ReleaseReport::count(FileState state) const {
  return std::count_if(files.begin(), files.end(),
                       [&](const FileReport& file) { return file.state == state; });
}

int64_t ReleaseReport::bytes(FileState state) const {
  int64_t sum = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].state == state) sum += state == FileState::kMissing ? leaves[i].bytes : files[i].bytes;
  }
  return sum;
}

Result<ReleaseReport> check_release(io::FileSystem& fs, const std::string& directory,
                                    const CheckOptions& options) {
  ASSIGN_OR_RETURN(const Release release, Release::open(fs, directory, options.config));
  ReleaseReport report{.directory = release.directory(),
                       .shape = release.shape(),
                       .leaves = release.leaves(),
                       .files = {},
                       .others = {}};
  report.contents = options.contents;
  Checker(fs, release, options, report).run();
  ASSIGN_OR_RETURN(report.others, release.other_files());
  return report;
}

}  // namespace ostro::grok
