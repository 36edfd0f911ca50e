// files_below, hash_files, copy_file: the files of a directory, their hashes, and copies of them.
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

// The paths of all files below `directory`, relative to it and sorted, also of those whose names begin with a
// dot. A link to a directory is not entered, for it may lead to one above it: its path is added to `links`;
// without `links` it is an error, kInvalidArgument.
Result<std::vector<std::string>> files_below(io::FileSystem& fs, const std::string& directory,
                                             std::vector<std::string>* links = nullptr);

// Size and SHA-256 of files below `directory`, or the error of reading one. As many files are hashed at a
// time as there are `threads`, with a small buffer each; `what` is shown with the part of the bytes that is
// done.
std::map<std::string, Result<FileSum>> hash_files(io::FileSystem& fs, const std::string& directory,
                                                  const std::vector<std::string>& paths, int threads,
                                                  Progress& progress, const std::string& what);

// Writes a copy of a file, or of its first `bytes` bytes, into a directory that exists. Not durable before
// the directory is synced (sync_tree). `done` is told the bytes of each piece.
Status copy_file(io::FileSystem& fs, const std::string& from, const std::string& to,
                 const std::function<void(int64_t)>& done, int64_t bytes = -1);

}  // namespace ostro::bundle
