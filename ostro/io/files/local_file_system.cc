#include "ostro/io/files/local_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "ostro/io/files/direct_file.h"
#include "ostro/io/files/lfs_pointer.h"
#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

Error system_error(const char* what, const std::string& path, int code) {
  std::string message = fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(code));
  const bool absent = code == ENOENT || code == ENOTDIR;
  return Error(absent ? ErrorCode::kNotFound : ErrorCode::kIo, std::move(message));
}

bool is_link(const std::string& directory, const std::string& name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_LNK;
  struct stat info{};
  return ::lstat(join_path(directory, name).c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Result<Descriptor> open_descriptor(const char* what, const std::string& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) return system_error(what, path, errno);
  }
}

Status write_all(int fd, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// Reads until `out` is full or the file ends. Returns the number of bytes read.
Result<size_t> read_at(int fd, const std::string& path, int64_t offset, std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read", path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

class LocalRandomAccessFile final : public DirectFile {
 public:
  LocalRandomAccessFile(Descriptor fd, std::string path, int64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}

  Status read(int64_t offset, std::span<std::byte> out) const override {
    OSTRO_CHECK(offset >= 0, "{}: read at offset {}", path_, offset);
    size_t done = 0;
    if (direct_) {
      const int64_t n = read_direct(fd_.get(), offset, out);
      if (n < 0) return system_error("read", path_, errno);
      done = static_cast<size_t>(n);
    } else {
      ASSIGN_OR_RETURN(done, read_at(fd_.get(), path_, offset, out));
    }
    if (done == out.size()) return {};
    return corrupt(fmt::format("{}: ends at byte {}, but bytes [{}, {}) were expected", path_,
                               offset + static_cast<int64_t>(done), offset,
                               offset + static_cast<int64_t>(out.size())));
  }
  int64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  int descriptor() const override { return fd_.get(); }
  void read_directly() override {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    direct_ = flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags | O_DIRECT) == 0;
  }

 private:
  Descriptor fd_;
  std::string path_;
  int64_t size_;
  bool direct_ = false;
};

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status append(std::span<const std::byte> bytes) override { return write_all(fd_.get(), path_, bytes); }

  Status sync() override {
    // The kernel reports a failed write only once, so a later fsync that succeeds proves nothing.
    if (sync_failed_ != 0) return system_error("sync (again)", path_, sync_failed_);
    if (::fsync(fd_.get()) == 0) return {};
    sync_failed_ = errno;
    return system_error("sync", path_, sync_failed_);
  }

  Status close() override {
    const int fd = fd_.release();
    OSTRO_CHECK(fd >= 0, "{}: closed twice", path_);
    return ::close(fd) == 0 || errno == EINTR ? Status() : Status(system_error("close", path_, errno));
  }

 private:
  Descriptor fd_;
  std::string path_;
  int sync_failed_ = 0;
};

class LocalFileLock final : public FileLock {
 public:
  explicit LocalFileLock(Descriptor fd) : fd_(std::move(fd)) {}

 private:
  Descriptor fd_;  // closing it releases the lock
};

class LocalFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) override {
    // A named pipe would be waited for without an end, and has no offsets.
    ASSIGN_OR_RETURN(Descriptor fd, open_descriptor("open", path, O_RDONLY | O_NONBLOCK));
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return system_error("stat", path, errno);
    if (S_ISFIFO(info.st_mode))
      return Error(ErrorCode::kIo, fmt::format("{}: is a pipe; a file is needed here", path));
    if (S_ISDIR(info.st_mode)) return system_error("open", path, EISDIR);
    auto file = std::make_unique<LocalRandomAccessFile>(std::move(fd), path, info.st_size);
    RETURN_IF_ERROR(refuse_lfs_pointer(*file));
    return std::unique_ptr<RandomAccessFile>(std::move(file));
  }

  Result<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, open_descriptor("create", path, O_WRONLY | O_CREAT | O_TRUNC));
    return std::unique_ptr<WritableFile>(std::make_unique<LocalWritableFile>(std::move(fd), path));
  }

  Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) override {
    ASSIGN_OR_RETURN(Descriptor fd, open_descriptor("open", path, O_WRONLY | O_CREAT | O_APPEND));
    return std::unique_ptr<WritableFile>(std::make_unique<LocalWritableFile>(std::move(fd), path));
  }

  Result<FileInfo> stat(const std::string& path) override {
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return system_error("stat", path, errno);
    const int64_t mtime = static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
    return FileInfo{info.st_size, mtime, S_ISDIR(info.st_mode)};
  }

  Status truncate(const std::string& path, int64_t size) override {
    ASSIGN_OR_RETURN(const Descriptor fd, open_descriptor("open", path, O_WRONLY));
    if (::ftruncate(fd.get(), size) != 0) return system_error("truncate", path, errno);
    if (::fsync(fd.get()) != 0) return system_error("sync", path, errno);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return system_error(fmt::format("rename to {}", to).c_str(), from, errno);
  }

  Status remove(const std::string& path) override {
    return std::remove(path.c_str()) == 0 ? Status() : Status(system_error("remove", path, errno));
  }

  Result<std::vector<DirEntry>> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (directory == nullptr) return system_error("list", path, errno);
    std::vector<DirEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) return system_error("list", path, errno);
        break;
      }
      std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      bool is_directory = entry->d_type == DT_DIR;
      if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
        // A broken symbolic link is still an entry.
        auto info = stat(join_path(path, name));
        is_directory = info.ok() && info->is_directory;
      }
      entries.push_back({std::move(name), is_directory, std::nullopt, is_link(path, name, entry->d_type)});
    }
    std::sort(entries.begin(), entries.end(),
              [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
    return entries;
  }

  Status make_dirs(const std::string& path) override {
    const auto info = stat(path);
    if (info.ok())
      return info->is_directory ? Status() : Status(system_error("make directory", path, ENOTDIR));
    if (info.error().code() != ErrorCode::kNotFound) return info.error();
    const std::string parent = parent_path(path);
    if (parent != path) RETURN_IF_ERROR(make_dirs(parent));
    if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return system_error("make directory", path, errno);
    return sync_dir(parent);
  }

  Status sync_dir(const std::string& path) override {
    ASSIGN_OR_RETURN(const Descriptor fd, open_descriptor("open", path, O_RDONLY | O_DIRECTORY));
    // Some network file systems cannot sync a directory and say so; their renames are synchronous.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) return system_error("sync directory", path, errno);
    return {};
  }

  Status sync_tree(const std::string& path) override {
    ASSIGN_OR_RETURN(const Descriptor fd, open_descriptor("open", path, O_RDONLY | O_DIRECTORY));
    return ::syncfs(fd.get()) == 0 ? Status() : Status(system_error("sync everything below", path, errno));
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) override {
    ASSIGN_OR_RETURN(Descriptor fd, open_descriptor("open lock", path, O_RDWR | O_CREAT));
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return system_error("lock", path, errno);
      std::string holder(256, '\0');
      ASSIGN_OR_RETURN(const size_t size,
                       read_at(fd.get(), path, 0, std::as_writable_bytes(std::span(holder))));
      holder.resize(size);
      return busy(fmt::format("{}: locked by {}", path, holder.empty() ? "another process" : holder));
    }
    if (::ftruncate(fd.get(), 0) != 0) return system_error("truncate", path, errno);
    RETURN_IF_ERROR(write_all(fd.get(), path, std::as_bytes(std::span(owner))));
    return std::unique_ptr<FileLock>(std::make_unique<LocalFileLock>(std::move(fd)));
  }
};

}  // namespace

FileSystem& local_file_system() {
  static LocalFileSystem fs;
  return fs;
}

bool is_link(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace ostro::io
