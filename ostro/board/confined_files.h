// ConfinedFiles: a file system in which only some folders are, so that no path in an entry's own files leads
// elsewhere: to other files of this machine, or to another one.
//
// It has what lies below the folders, by their names. Everything else is kNotFound. Links are followed as the
// file system behind it does: open_entry refuses an entry that has one. Thread-safe if that one is.
#pragma once

#include <string>
#include <vector>

#include "ostro/io/files/forwarding_file_system.h"

namespace ostro::board {

class ConfinedFiles final : public io::ForwardingFileSystem {
 public:
  // Empty names in `folders` are left out.
  ConfinedFiles(io::FileSystem& base, std::vector<std::string> folders);

 private:
  Status before(Operation operation, const std::string& path) override;

  std::vector<std::string> folders_;
};

}  // namespace ostro::board
