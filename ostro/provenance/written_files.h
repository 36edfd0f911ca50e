// WrittenFiles: a file system that hashes what is written through it, so that a program can say afterwards
// which files it made without reading them again.
//
// It forwards to another one, which it does not own, and keeps the size and SHA-256 of every file that was
// created and renamed or closed below a directory. Files are written by one thread, in order.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/provenance/provenance.h"

namespace ostro::provenance {

class WrittenFiles final : public io::ForwardingFileSystem {
 public:
  WrittenFiles(io::FileSystem& base, const std::string& directory);

  // By path below the directory, a temporary name (io::temporary_path) as the name that it stands for. A file
  // that was written twice has the digest of its last writing.
  std::map<std::string, FileDigest> files() const { return *files_; }

 private:
  Status before(Operation operation, const std::string& path) override;
  std::unique_ptr<io::WritableFile> writing(std::unique_ptr<io::WritableFile> file,
                                            const std::string& path) override;

  const std::string begin_;  // of the paths below the directory
  std::shared_ptr<std::map<std::string, FileDigest>> files_;
};

}  // namespace ostro::provenance
