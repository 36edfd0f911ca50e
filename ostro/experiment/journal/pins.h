// Pins: lab.lock beside a plan: the SHA-256 of every file of its sources, written when a source is first used
// and compared from then on. The labs of one folder share the file. A value; one thread uses it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"

namespace ostro::lab {

inline constexpr const char* kPinsFile = "lab.lock";

// A file of a source, with its path as seen from the plan's folder.
struct PinnedFile {
  std::string path, sha256;
  bool operator==(const PinnedFile&) const = default;
};

class Pins {
 public:
  // Reads the file; none is one without pins. Errors: kCorrupt, when it is no lab.lock.
  static Result<Pins> read(io::FileSystem& fs, const std::string& path);

  // Pins the files of a source (LAB/STEP), or compares them with the pins that it has. `patterns` are those
  // of the plan: under others, files may come and go, but none that was pinned may have other bytes. Errors:
  // kCorrupt, for the first file that changed (with both hashes), is gone or is new.
  Status pin(const std::string& source, const std::vector<std::string>& patterns,
             const std::vector<PinnedFile>& files);
  bool has(const std::string& source) const { return sources_.contains(source); }
  // Forgets the pins of a source.
  void forget(const std::string& source);
  // Writes what was pinned and forgotten into the file as it is now, if anything was: another lab may have
  // written its pins meanwhile. Errors: kBusy, when another process holds the file's lock for seconds.
  Status save();

 private:
  struct Source {
    std::vector<std::string> patterns;
    std::vector<PinnedFile> files;  // in the order in which they are read
  };
  Pins(io::FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}
  std::string text() const;

  io::FileSystem* fs_;
  std::string path_, saved_;
  std::map<std::string, Source> sources_;
  std::set<std::string> touched_;  // sources that were pinned or forgotten since the file was read
};

}  // namespace ostro::lab
