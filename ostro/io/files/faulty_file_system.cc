#include "ostro/io/files/faulty_file_system.h"

#include <algorithm>
#include <limits>
#include <mutex>

namespace ostro::io {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

Error injected(const char* what, const std::string& path, const char* reason) {
  return io_error(fmt::format("{}: cannot {}: {} (injected)", path, what, reason));
}

}  // namespace

struct FaultyFileSystem::State {
  mutable std::mutex mutex;
  Fault fault = Fault::kNone;
  int64_t fault_at = kNever, read_error_at = kNever;
  int64_t space = kNever;
  int64_t writes = 0, reads = 0;
  bool triggered = false, crashed = false, full = false;

  Status on_read(const char* what, const std::string& path) {
    const std::lock_guard lock(mutex);
    if (crashed) return injected(what, path, "crashed");
    if (reads++ == read_error_at) return injected(what, path, "Input/output error");
    return {};
  }

  // A write operation other than an append. A kSyncError waits for the first sync from `fault_at` on; a full
  // disk refuses only operations that need space.
  Status on_write(const char* what, const std::string& path, bool is_sync = false, bool needs_space = false) {
    const std::lock_guard lock(mutex);
    if (crashed) return injected(what, path, "crashed");
    const bool due = writes++ >= fault_at && !triggered;
    if (needs_space && full) return injected(what, path, "No space left on device");
    if (!due) return {};
    if (fault == Fault::kSyncError) {
      if (!is_sync) return {};  // wait for a sync
      triggered = true;
      return injected(what, path, "Input/output error");
    }
    triggered = true;
    switch (fault) {
      case Fault::kCrash: crashed = true; return injected(what, path, "crashed");
      case Fault::kDiskFull:
        full = true;
        return needs_space ? Status(injected(what, path, "No space left on device")) : Status();
      default: return injected(what, path, "Input/output error");
    }
  }

  // Returns the number of bytes of an append to write, and the status that it returns.
  std::pair<size_t, Status> on_append(const std::string& path, size_t size) {
    const std::lock_guard lock(mutex);
    if (crashed) return {0, injected("write", path, "crashed")};
    const bool due = writes++ >= fault_at && !triggered && fault != Fault::kSyncError;
    if (due) {
      triggered = true;
      if (fault == Fault::kIoError) return {0, injected("write", path, "Input/output error")};
      if (fault == Fault::kShortWrite) return {size / 2, injected("write", path, "Input/output error")};
      if (fault == Fault::kCrash) crashed = true;
      if (fault == Fault::kCrash) return {size / 2, injected("write", path, "crashed")};
      full = true;
      return {size / 2, injected("write", path, "No space left on device")};
    }
    if (full) return {0, injected("write", path, "No space left on device")};
    if (static_cast<int64_t>(size) > space) {
      full = true;
      triggered = true;
      return {static_cast<size_t>(space), injected("write", path, "No space left on device")};
    }
    if (space != kNever) space -= static_cast<int64_t>(size);
    return {size, {}};
  }
};

class FaultyFileSystem::ReadHandle final : public RandomAccessFile {
 public:
  ReadHandle(std::unique_ptr<RandomAccessFile> base, std::shared_ptr<State> state)
      : base_(std::move(base)), state_(std::move(state)) {}
  Status read(int64_t offset, std::span<std::byte> out) const override {
    RETURN_IF_ERROR(state_->on_read("read", base_->path()));
    return base_->read(offset, out);
  }
  int64_t size() const override { return base_->size(); }
  const std::string& path() const override { return base_->path(); }

 private:
  std::unique_ptr<RandomAccessFile> base_;
  std::shared_ptr<State> state_;
};

class FaultyFileSystem::WriteHandle final : public WritableFile {
 public:
  WriteHandle(std::unique_ptr<WritableFile> base, std::shared_ptr<State> state, std::string path)
      : base_(std::move(base)), state_(std::move(state)), path_(std::move(path)) {}

  Status append(std::span<const std::byte> bytes) override {
    const auto [size, status] = state_->on_append(path_, bytes.size());
    if (size > 0) RETURN_IF_ERROR(base_->append(bytes.first(size)));
    return status;
  }
  Status sync() override {
    if (Status status = state_->on_write("sync", path_, true); !status.ok()) {
      failed_ = true;
      return status;
    }
    if (failed_) return injected("sync", path_, "Input/output error");
    return base_->sync();
  }
  Status close() override { return base_->close(); }

 private:
  std::unique_ptr<WritableFile> base_;
  std::shared_ptr<State> state_;
  std::string path_;
  bool failed_ = false;
};

FaultyFileSystem::FaultyFileSystem(FileSystem& base)
    : ForwardingFileSystem(base), state_(std::make_shared<State>()) {}
FaultyFileSystem::~FaultyFileSystem() = default;

void FaultyFileSystem::inject(Fault fault, int64_t at) {
  heal();
  const std::lock_guard lock(state_->mutex);
  state_->fault = fault;
  state_->fault_at = fault == Fault::kNone ? kNever : at;
}

void FaultyFileSystem::inject_read_error(int64_t at) {
  heal();
  const std::lock_guard lock(state_->mutex);
  state_->read_error_at = at;
}

void FaultyFileSystem::limit_space(int64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->space = bytes;
}

void FaultyFileSystem::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->fault = Fault::kNone;
  state_->fault_at = state_->read_error_at = state_->space = kNever;
  state_->writes = state_->reads = 0;
  state_->triggered = state_->crashed = state_->full = false;
}

int64_t FaultyFileSystem::writes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->writes;
}

int64_t FaultyFileSystem::reads() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reads;
}

bool FaultyFileSystem::triggered() const {
  const std::lock_guard lock(state_->mutex);
  return state_->triggered;
}

Status FaultyFileSystem::before(Operation operation, const std::string& path) {
  switch (operation) {
    case Operation::kOpen: return state_->on_read("open", path);
    case Operation::kStat: return state_->on_read("stat", path);
    case Operation::kList: return state_->on_read("list", path);
    case Operation::kCreate: return state_->on_write("create", path, false, true);
    case Operation::kOpenAppend: return state_->on_write("open", path, false, true);
    case Operation::kMakeDirs: return state_->on_write("make directory", path, false, true);
    case Operation::kTruncate: return state_->on_write("truncate", path);
    case Operation::kRename: return state_->on_write("rename", path);
    case Operation::kRemove: return state_->on_write("remove", path);
    case Operation::kLock: return state_->on_write("lock", path);
    case Operation::kSyncDir: return state_->on_write("sync directory", path, true);
    case Operation::kSyncTree: return state_->on_write("sync everything below", path, true);
  }
  return {};
}

std::unique_ptr<RandomAccessFile> FaultyFileSystem::reading(std::unique_ptr<RandomAccessFile> file) {
  return std::make_unique<ReadHandle>(std::move(file), state_);
}

std::unique_ptr<WritableFile> FaultyFileSystem::writing(std::unique_ptr<WritableFile> file,
                                                        const std::string& path) {
  return std::make_unique<WriteHandle>(std::move(file), state_, path);
}

}  // namespace ostro::io
