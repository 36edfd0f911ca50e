// WrittenFiles: a file system that hashes what is written through it, so that a program can say afterwards
// which files it made without reading them again.
//
// It forwards every call to another file system, which must outlive it, and adds no errors. It keeps the size
// and SHA-256 of every file below a directory that was created, then closed or renamed. Only one thread may
// write, one file after the other.
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

  // The digests by path below the directory. A file with a temporary name (io::temporary_path) has the name
  // that it stands for. A file that was written twice has the digest of the second content.
  std::map<std::string, FileDigest> files() const { return *files_; }

 private:
  Status before(Operation operation, const std::string& path) override;
  std::unique_ptr<io::WritableFile> writing(std::unique_ptr<io::WritableFile> file,
                                            const std::string& path) override;

  const std::string begin_;  // of the paths below the directory
  std::shared_ptr<std::map<std::string, FileDigest>> files_;
};

}  // namespace ostro::provenance
