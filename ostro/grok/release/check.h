// check_release: finds out which files of a release are whole, in a directory that a download may still be
// filling.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/grok/release/reader.h"

namespace ostro::grok {

enum class FileState {
  kWhole,
  kMissing,
  kShort,  // begins as it must and ends too early: a download may still be writing it
  kWrong,
};

struct FileReport {
  FileState state = FileState::kMissing;
  int64_t bytes = 0;   // of the file that is there
  std::string error;   // of kShort and kWrong
  std::string sha256;  // when contents were read and the file is whole
};

// The result of a check.
struct ReleaseReport {
  std::string directory;
  GrokShape shape;
  std::vector<Leaf> leaves;
  std::vector<FileReport> files;    // of each leaf
  std::vector<std::string> others;  // names of further tensor files, which the shape does not have
  bool contents = false;
  int64_t bytes_read = 0;

  int64_t count(FileState state) const;
  // Bytes of the files in that state; of missing ones, the bytes they should have.
  int64_t bytes(FileState state) const;
};

struct CheckOptions {
  std::string config;  // a file with the shape; "" for config.json of the directory
  // Also read all elements: norms, routers, embeddings and scales must be finite, scales not negative, and
  // long runs of zeros are taken for places that a download has not filled.
  bool contents = false;
  // A folder that keeps the results, so that a file that has not changed since (size and time) is not read
  // again;
  // "" for none. It must not be the folder of the release, because the maker of the release could have
  // written results there.
  std::string memory;
  // Called with the bytes of the files looked at so far.
  std::function<void(int64_t done, int64_t total)> progress;
};

// Without `contents` this reads a few hundred bytes of each file. Errors only when the directory itself, or
// its shape, cannot be read.
Result<ReleaseReport> check_release(io::FileSystem& fs, const std::string& directory,
                                    const CheckOptions& options);

// A line for each state, and for each file that is not whole; with `all`, for every file.
std::string check_text(const ReleaseReport& report, bool all);
// The report as JSON.
std::string check_json(const ReleaseReport& report);

}  // namespace ostro::grok
