// SiteFolder: the folder into which a site is written, with the list of its files (site_files.txt).
//
// What an earlier site has written there goes: texts and samples before anything is read or written, so that
// an error or a kill leaves none that may not be shown any more, the rest at the end. Files that no site has
// written stay. One thread uses it. Errors: those of reading and writing.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "ostro/io/files/file_system.h"

namespace ostro::site {

inline constexpr const char* kTexts = "-texts";  // ends the names of files of texts

class SiteFolder {
 public:
  SiteFolder(io::FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}

  // Removes the texts and samples of an earlier site. Comes first.
  Status begin();
  Status put(const std::string& name, std::string bytes);
  // Removes what an earlier site had and this one does not.
  Status end();
  int64_t written() const { return static_cast<int64_t>(written_.size()); }

 private:
  Status find_known();
  Status remove(const std::string& name);
  Status write_list(const std::set<std::string>& names);

  io::FileSystem& fs_;
  const std::string path_;
  std::set<std::string> known_, written_;  // of an earlier site, and of this one
  std::unique_ptr<io::WritableFile> list_;
};

}  // namespace ostro::site
