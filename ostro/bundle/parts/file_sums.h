// files_below, size_below, hash_files, copy_file: the files of a directory, their hashes, and copies of them.
//
// Errors are those of reading and writing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/bundle/parts/manifest.h"
#include "ostro/io/files/file_system.h"

namespace ostro::bundle {

// Returns the paths of all files below `directory`, relative to it and sorted, also of those whose names
// begin with a dot. Links to directories are not entered, because they may lead to a directory above: their
// paths are added to `links`; without `links` one is an error, kInvalidArgument.
Result<std::vector<std::string>> files_below(io::FileSystem& fs, const std::string& directory,
                                             std::vector<std::string>* links = nullptr);

// The number of files below `directory`, and their bytes. Errors as files_below.
struct FolderSize {
  int64_t files = 0, bytes = 0;
};
Result<FolderSize> size_below(io::FileSystem& fs, const std::string& directory);

// Returns for each file below `directory` its size and SHA-256, or the error of reading it. Each of `threads`
// threads hashes one file at a time, with a small buffer. `progress` shows `what` with the part of the bytes
// that is done.
std::map<std::string, Result<FileSum>> hash_files(io::FileSystem& fs, const std::string& directory,
                                                  const std::vector<std::string>& paths, int threads,
                                                  Progress& progress, const std::string& what);

// Writes a copy of a file, or of its first `bytes` bytes, into a directory that exists. The copy is durable
// when the directory has been synced (sync_tree). `done` is called with the bytes of each piece.
Status copy_file(io::FileSystem& fs, const std::string& from, const std::string& to,
                 const std::function<void(int64_t)>& done, int64_t bytes = -1);

}  // namespace ostro::bundle
