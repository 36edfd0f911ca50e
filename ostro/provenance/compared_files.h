// ComparedFiles: a file system that writes nothing, but compares what is written with files that are there
// already. So it finds out whether a program would make the same files again, and holds no more in memory
// than one piece that the program writes.
//
// Paths below `out` do not exist for a reader. What is created there is compared, piece by piece, with the
// file of the same path below `directory`; a temporary name (io::temporary_path) stands for the name that it
// gets. All other paths are those of another file system, which it does not own; nothing can be written
// there. Files are written by one thread, in order. Errors: kUnsupported for writing anywhere else, and for
// appending, truncating and locking; kNotFound for reading below `out`; those of the other file system.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "ostro/io/files/file_system.h"

namespace ostro::provenance {

// The comparison of a file as it was written the last time with the one that is there.
struct ComparedFile {
  int64_t written = 0;            // bytes
  int64_t there = 0;              // bytes; -1: there is no such file
  int64_t first_difference = -1;  // the first byte that differs; -1: none, up to the shorter length
  std::string begin;              // what was appended first: the whole of a file that is written at once
  bool same() const { return first_difference < 0 && written == there; }
};

class ComparedFiles final : public io::FileSystem {
 public:
  // Called with bytes that were written at `offset` of the file `name` and differ from those that are there;
  // `there` is shorter when that file ends before.
  using OnDifference =
      std::function<void(const std::string& name, int64_t offset, std::span<const std::byte> written,
                         std::span<const std::byte> there)>;
  using OnCompared = std::function<void(int64_t bytes)>;  // called with the sum of bytes compared so far

  ComparedFiles(io::FileSystem& base, const std::string& out, std::string directory, OnDifference different,
                OnCompared compared = {});
  ~ComparedFiles() override;

  const std::map<std::string, ComparedFile>& files() const { return files_; }

  Result<std::unique_ptr<io::RandomAccessFile>> open(const std::string& path) override;
  Result<std::unique_ptr<io::WritableFile>> create(const std::string& path) override;
  Result<std::unique_ptr<io::WritableFile>> open_append(const std::string& path) override;
  Result<io::FileInfo> stat(const std::string& path) override;
  Status truncate(const std::string& path, int64_t size) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Result<std::vector<io::DirEntry>> list(const std::string& path) override;
  Status make_dirs(const std::string& path) override;
  Status sync_dir(const std::string& path) override;
  Status sync_tree(const std::string& path) override;
  Result<std::unique_ptr<io::FileLock>> lock(const std::string& path, std::string_view owner) override;

 private:
  class File;

  // Whether the path is `out` or below it.
  bool is_out(const std::string& path) const;
  Status only_out(const std::string& path) const;

  io::FileSystem& base_;
  const std::string out_, directory_;
  const OnDifference different_;
  const OnCompared on_compared_;
  int64_t compared_ = 0;
  std::map<std::string, ComparedFile> files_;
};

}  // namespace ostro::provenance
