#include "ostro/checkpoint/scratch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

constexpr const char* kPlaceLock = "LOCK";
constexpr int kMostPlaces = 1024;  // processes of one run on one machine
constexpr size_t kHashDigits = 16;

std::string folder_of_run(const std::string& scratch, const std::string& run_directory) {
  const std::string path = io::clean_path(run_directory);
  return io::join_path(io::absolute_path(scratch),
                       fmt::format("{}-{}", io::base_name(path), sha256_hex(path).substr(0, kHashDigits)));
}

}  // namespace

// A file in scratch that grows beside the one in the store. It is gone unless it was finished. Its errors are
// told to the file system, and end it.
class ScratchFileSystem::Copy {
 public:
  Copy(ScratchFileSystem& owner, int64_t step, std::string path)
      : owner_(owner), step_(step), path_(std::move(path)), temporary_(path_ + ".tmp") {
    after([&]() -> Status {
      RETURN_IF_ERROR(owner_.local_.make_dirs(io::parent_path(path_)));
      ASSIGN_OR_RETURN(file_, owner_.local_.create(temporary_));
      return {};
    });
  }
  ~Copy() {
    if (file_ == nullptr) return;
    file_.reset();
    (void)owner_.local_.remove(temporary_);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void append(std::span<const std::byte> bytes) {
    if (file_ != nullptr) after([&] { return file_->append(bytes); });
  }
  // Nothing is synced: after a power loss the hash tells what is whole.
  void finish() {
    if (file_ == nullptr) return;
    after([&]() -> Status {
      RETURN_IF_ERROR(file_->close());
      return owner_.local_.rename(temporary_, path_);
    });
    file_.reset();
  }

 private:
  void after(const std::function<Status()>& work) {
    const Status done = work();
    if (done.ok()) return;
    file_.reset();
    (void)owner_.local_.remove(temporary_);
    owner_.failed(step_, done.error());
  }

  ScratchFileSystem& owner_;
  const int64_t step_;
  const std::string path_, temporary_;
  std::unique_ptr<io::WritableFile> file_;
};

class ScratchFileSystem::Tee final : public io::WritableFile {
 public:
  Tee(std::unique_ptr<io::WritableFile> stored, std::unique_ptr<Copy> copy)
      : stored_(std::move(stored)), copy_(std::move(copy)) {}

  Status append(std::span<const std::byte> bytes) override {
    copy_->append(bytes);
    return stored_->append(bytes);
  }
  Status sync() override { return stored_->sync(); }
  Status close() override {
    RETURN_IF_ERROR(stored_->close());
    copy_->finish();
    return {};
  }

 private:
  std::unique_ptr<io::WritableFile> stored_;
  std::unique_ptr<Copy> copy_;
};

ScratchFileSystem::ScratchFileSystem(io::FileSystem& base, io::FileSystem& local, const std::string& scratch,
                                     const std::string& run_directory)
    : ForwardingFileSystem(base),
      base_(base),
      local_(local),
      checkpoints_(io::join_path(io::clean_path(run_directory), kCheckpointsFolder) + "/"),
      folder_(folder_of_run(scratch, run_directory)) {}

ScratchFileSystem::~ScratchFileSystem() = default;

std::optional<ScratchFileSystem::Chunk> ScratchFileSystem::chunk_at(const std::string& path) const {
  const std::string clean = io::clean_path(path);
  if (!clean.starts_with(checkpoints_)) return std::nullopt;
  const std::string below = clean.substr(checkpoints_.size());
  const size_t slash = below.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto step = step_of_directory(below.substr(0, slash));
  const std::string name = io::base_name(below);
  if (!step || name == kManifestName || name == "zarr.json") return std::nullopt;
  return Chunk{*step, below.substr(slash + 1)};
}

std::vector<std::string> ScratchFileSystem::places() {
  std::vector<std::string> out;
  const auto entries = local_.list(folder_);
  if (!entries.ok()) return out;
  for (const io::DirEntry& entry : *entries)
    if (entry.is_directory) out.push_back(io::join_path(folder_, entry.name));
  return out;
}

std::vector<std::string> ScratchFileSystem::folders_of(const std::string& path) {
  std::vector<std::string> out;
  const std::string clean = io::clean_path(path);
  if (!clean.starts_with(checkpoints_)) return out;
  const std::string name = clean.substr(checkpoints_.size());
  if (!step_of_directory(name)) return out;
  for (const std::string& place : places()) {
    const std::string folder = io::join_path(place, name);
    if (const auto there = local_.exists(folder); there.ok() && *there) out.push_back(folder);
  }
  return out;
}

// The first that no other process has. What another one left there, that has ended, is this one's now.
Status ScratchFileSystem::take_place() {
  if (own_ != nullptr) return {};
  for (int number = 0; number < kMostPlaces; ++number) {
    const std::string place = io::join_path(folder_, std::to_string(number));
    RETURN_IF_ERROR(local_.make_dirs(place));
    auto lock = local_.lock(io::join_path(place, kPlaceLock), "a process that keeps its checkpoints here");
    if (!lock.ok() && lock.error().code() == ErrorCode::kBusy) continue;
    ASSIGN_OR_RETURN(own_, std::move(lock));
    place_ = place;
    return {};
  }
  return io_error(fmt::format("{}: {} processes have their places there", folder_, kMostPlaces));
}

// Removes all steps but `step`, which is being written, and the newest checkpoint before it that the store
// has whole: from the place of this process, and from those of processes that have ended. `last`: the step
// that this process wrote before.
Status ScratchFileSystem::tidy(int64_t step, std::optional<int64_t> last) {
  std::vector<std::pair<std::string, std::unique_ptr<io::FileLock>>> mine;
  std::set<int64_t, std::greater<>> before;
  if (last && *last < step) before.insert(*last);  // also where nothing of it could be kept
  for (const std::string& place : places()) {
    std::unique_ptr<io::FileLock> lock;
    if (place != place_) {
      auto taken = local_.lock(io::join_path(place, kPlaceLock), "a process that tidies up");
      if (!taken.ok()) continue;
      lock = std::move(*taken);
    }
    ASSIGN_OR_RETURN(const auto entries, local_.list(place));
    for (const io::DirEntry& entry : entries)
      if (const auto found = step_of_directory(entry.name); found && *found < step) before.insert(*found);
    mine.emplace_back(place, std::move(lock));
  }
  std::optional<int64_t> kept;
  for (const int64_t earlier : before) {
    const auto whole = base_.exists(checkpoints_ + step_directory(earlier) + "/" + kManifestName);
    if (whole.ok() && !*whole) continue;
    kept = earlier;
    break;
  }
  for (const auto& [place, lock] : mine) {
    ASSIGN_OR_RETURN(const auto entries, local_.list(place));
    for (const io::DirEntry& entry : entries) {
      const auto found = step_of_directory(entry.name);
      if (found && *found != step && found != kept)
        RETURN_IF_ERROR(local_.remove_all(io::join_path(place, entry.name)));
    }
  }
  return {};
}

Status ScratchFileSystem::begin(int64_t step, std::optional<int64_t> last) {
  RETURN_IF_ERROR(take_place());
  return tidy(step, last);
}

std::unique_ptr<ScratchFileSystem::Copy> ScratchFileSystem::copy_of(const Chunk& chunk) {
  Status begun;
  {
    const std::lock_guard guard(mutex_);
    if (step_ != chunk.step) {
      begun = begin(chunk.step, std::exchange(step_, chunk.step));
      gave_up_ = !begun.ok();
    } else if (gave_up_) {
      return nullptr;
    }
  }
  if (!begun.ok()) {
    failed(chunk.step, begun.error());
    return nullptr;
  }
  const std::string folder = io::join_path(place_, step_directory(chunk.step));
  return std::make_unique<Copy>(*this, chunk.step, io::join_path(folder, chunk.below));
}

// Gives the room back that this step has taken, so that a disk does not stay full.
void ScratchFileSystem::failed(int64_t step, const Error& error) {
  if (!warned_.exchange(true))
    log_warning(
        fmt::format("{} cannot keep the checkpoint of step {} (trainer.scratch_dir): {}; the run goes on, "
                    "and a restore reads from the store what is not there. It is tried again at each "
                    "checkpoint, and not told again",
                    folder_, step, error.message()));
  const std::lock_guard guard(mutex_);
  if (step_ != step) return;
  gave_up_ = true;
  if (!place_.empty()) (void)local_.remove_all(io::join_path(place_, step_directory(step)));
}

Result<std::unique_ptr<io::WritableFile>> ScratchFileSystem::create_once(const std::string& path) {
  ASSIGN_OR_RETURN(auto stored, base_.create_once(path));
  const auto chunk = chunk_at(path);
  auto copy = chunk ? copy_of(*chunk) : nullptr;
  if (copy == nullptr) return stored;
  return std::unique_ptr<io::WritableFile>(std::make_unique<Tee>(std::move(stored), std::move(copy)));
}

Status ScratchFileSystem::write_later(const std::string& path, std::string_view content) {
  return base_.write_later(path, content);
}
Status ScratchFileSystem::remove_all(const std::string& path) { return base_.remove_all(path); }

ScratchFileSystem* scratch_of(io::FileSystem& fs) { return dynamic_cast<ScratchFileSystem*>(&fs); }

}  // namespace ostro::checkpoint
