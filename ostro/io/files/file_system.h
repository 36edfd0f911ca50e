// FileSystem: the only way the project touches files, so that durability can be tested against a disk that
// fills up, errs or loses power (memory_file_system.h, faulty_file_system.h).
//
// Durability follows POSIX, and the memory implementation enforces it: what append() wrote survives a crash
// only after WritableFile::sync(), and a created, renamed or removed name only after sync_dir() of its
// directory. Use write_file_atomically (atomic_file.h) unless a format needs more.
//
// A FileSystem and a RandomAccessFile may be used from several threads; a WritableFile by one at a time.
// Every error names the path and what the system said; a missing file is ErrorCode::kNotFound.
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
  // Fills `out` from byte `offset` on; a range that passes the end of the file is ErrorCode::kCorrupt.
  virtual Status read(int64_t offset, std::span<std::byte> out) const = 0;
  // Size in bytes when it was opened.
  virtual int64_t size() const = 0;
  virtual const std::string& path() const = 0;
};

// A file open for appending. Appends go to the operating system at once (no buffer here: write blocks).
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes without sync
  virtual Status append(std::span<const std::byte> bytes) = 0;
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  // Makes everything appended so far durable. After a failure the content on disk is unknown and every later
  // sync fails too: give the file up and write another.
  virtual Status sync() = 0;
  // Nothing may follow it. Does not sync.
  virtual Status close() = 0;
};

// Held while it lives; its destructor lets go.
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
  std::optional<FileInfo> info;  // of a file, where listing tells it for nothing
  bool operator==(const DirEntry&) const = default;
};

// A file and what stat would say of it.
struct FoundFile {
  std::string path;
  FileInfo info;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Result<std::unique_ptr<RandomAccessFile>> open(const std::string& path) = 0;
  // A new, empty file; one that exists is emptied. The directory must exist.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  // A file to append to, created when absent.
  virtual Result<std::unique_ptr<WritableFile>> open_append(const std::string& path) = 0;
  virtual Result<FileInfo> stat(const std::string& path) = 0;
  // Cuts a file to `size` bytes and makes that durable.
  virtual Status truncate(const std::string& path, int64_t size) = 0;
  // Replaces `to` when it is a file or an empty directory, atomically. Also renames directories.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // A file or an empty directory.
  virtual Status remove(const std::string& path) = 0;
  // The entries of a directory, sorted by name (bytewise).
  virtual Result<std::vector<DirEntry>> list(const std::string& path) = 0;
  // A directory and its missing parents; fine when it exists. Durable once this returns.
  virtual Status make_dirs(const std::string& path) = 0;
  // Makes created, renamed and removed names of a directory durable.
  virtual Status sync_dir(const std::string& path) = 0;
  // Makes everything in and below a directory durable, contents and names: one flush for many new files,
  // where a sync of each would cost a disk's turn for each.
  virtual Status sync_tree(const std::string& path) = 0;
  // Takes the lock that the file at `path` stands for (created when absent, never removed) and writes `owner`
  // into it. Held by another, also in this process: ErrorCode::kBusy, with that owner's text.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view owner) = 0;

  // The whole file; one above `limit` bytes is ErrorCode::kCorrupt (a limit protects from foreign files).
  Result<std::string> read_file(const std::string& path, int64_t limit = std::numeric_limits<int64_t>::max());
  // False when it does not exist; errors other than absence are errors.
  Result<bool> exists(const std::string& path);
  // A file or a directory with all below it; fine when it does not exist. Not atomic.
  Status remove_all(const std::string& path);
  // Files (not directories) that match, see glob_match in path.h; sorted bytewise, each once, so that the
  // order is a function of the names alone. A pattern without wildcards gives the file when it exists.
  // Components that begin with "." match only a component of the pattern that does.
  Result<std::vector<std::string>> glob(const std::string& pattern);
  // The same with what is known of each file; one request for each directory where a request costs. Files
  // that are not wanted are not asked about. Errors: kNotFound, a file that was listed is not there.
  Result<std::vector<FoundFile>> find_files(const std::string& pattern,
                                            const std::function<bool(const std::string&)>& wanted = {});
};

}  // namespace ostro::io
