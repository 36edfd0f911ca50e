// FileSystem: the only way in which the project uses files. So durability can be tested against a disk that
// is full, fails or loses power (memory_file_system.h, faulty_file_system.h).
//
// Durability follows POSIX, and the memory implementation enforces it. Bytes written by append() survive a
// crash only after WritableFile::sync(). A created, renamed or removed name survives only after sync_dir() of
// its directory. Use write_file_atomically (atomic_file.h) unless a format needs more.
//
// A FileSystem and a RandomAccessFile may be used from several threads; a WritableFile by one at a time.
// Every error names the path and the system's message. A missing file is ErrorCode::kNotFound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::io {

// A file open for reading at any offset.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // Fills `out` with bytes from `offset` on. A range beyond the end of the file is ErrorCode::kCorrupt.
  virtual Status read(int64_t offset, std::span<std::byte> out) const = 0;
  // Size in bytes at the time of opening.
  virtual int64_t size() const = 0;
  virtual const std::string& path() const = 0;
};

// A file open for appending. There is no buffer: every append is a system call, so write large blocks.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes without sync
  virtual Status append(std::span<const std::byte> bytes) = 0;
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  // Makes everything appended so far durable. After a failure the content on disk is unknown, and every later
  // sync fails, too. Then give up this file and write another one.
  virtual Status sync() = 0;
  // Must be the last call. Does not sync.
  virtual Status close() = 0;
};

// The lock is held as long as this object lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

struct FileInfo {
  int64_t size = 0;      // bytes
  int64_t mtime_ns = 0;  // last change of content, nanoseconds since 1970
  bool is_directory = false;
  bool operator==(const FileInfo&) const = default;
};

struct DirEntry {
  std::string name;
  bool is_directory = false;
  std::optional<FileInfo> info;  // of a file, if listing gives it at no extra cost
  bool is_link = false;          // a symbolic link; is_directory is then that of what it leads to
  bool operator==(const DirEntry&) const = default;
};

// A file, with the result of stat.
struct FoundFile {
  std::string path;
  FileInfo info;
};

// The interface. Files and locks must not outlive the file system that opened them.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) = 0;
  // Makes an empty file; an existing one is truncated. The directory must exist.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  // Opens a file to append to; creates it when it does not exist.
  virtual Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) = 0;
  virtual Result<FileInfo> stat(const std::string& path) = 0;
  // Truncates a file to `size` bytes; durable when it returns.
  virtual Status truncate(const std::string& path, int64_t size) = 0;
  // Renames a file or directory, atomically. Replaces `to` if it is a file or an empty directory.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Removes a file or an empty directory.
  virtual Status remove(const std::string& path) = 0;
  // The entries of a directory, sorted by name (bytewise).
  virtual Result<std::vector<DirEntry>> list(const std::string& path) = 0;
  // Makes a directory and its missing parents; no error if it exists. Durable when it returns.
  virtual Status make_dirs(const std::string& path) = 0;
  // Makes all created, renamed and removed names of a directory durable.
  virtual Status sync_dir(const std::string& path) = 0;
  // Makes everything in and below a directory durable, contents and names. One flush for many new files is
  // faster than a sync of each.
  virtual Status sync_tree(const std::string& path) = 0;
  // Takes the lock of the file at `path` and writes `owner` into it. The file is created when it does not
  // exist, and never removed. ErrorCode::kBusy, with the other owner's text, when the lock is already held,
  // also within this process.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) = 0;

  // Whether the paths there are objects of a store: a file appears when it is synced or closed, and takes the
  // place of the one before as a whole; a folder exists while something lies in it, and cannot be renamed.
  virtual bool is_object_store(const std::string& /*path*/) { return false; }
  // As create(), for a file that is not there. In an object store it fails (kIo) when it is finished, if
  // another process has put other bytes there; the same bytes are fine.
  virtual Result<std::unique_ptr<WritableFile>> create_once(const std::string& path) { return create(path); }
  // Replaces a file that people look at, and that nothing depends on. On a disk at once, as
  // write_file_atomically(); in an object store within seconds, and only the newest content.
  virtual Status write_later(const std::string& path, std::string_view content);
  // Removes a file, or a directory with everything below it; no error if it does not exist. Not atomic.
  virtual Status remove_all(const std::string& path);

  // Reads a whole file. ErrorCode::kCorrupt when it has more than `limit` bytes; set a limit for files that
  // come from outside.
  Result<std::string> read_file(const std::string& path, int64_t limit = std::numeric_limits<int64_t>::max());
  // Creates or replaces a file. Not durable, and not atomic: write_file_atomically is (atomic_file.h).
  Status write_file(const std::string& path, std::string_view content);
  // False when the path does not exist. Any other failure is an error.
  Result<bool> exists(const std::string& path);
  // The files (not directories) that match a pattern (glob_match in path.h). They are sorted bytewise, each
  // once, so the order depends on the names alone. A pattern without wildcards gives the file if it exists. A
  // wildcard does not match a leading "." of a path component.
  Result<std::vector<std::string>> glob(const std::string& pattern);
  // Like glob(), with the FileInfo of each file. On servers this takes one request for each directory. Files
  // for which `wanted` is false are left out. Errors: kNotFound when a listed file is gone.
  Result<std::vector<FoundFile>> find_files(const std::string& pattern,
                                            const std::function<bool(const std::string&)>& wanted = {});

 private:
  Result<std::string> read_once(const std::string& path, int64_t limit);
};

}  // namespace ostro::io
