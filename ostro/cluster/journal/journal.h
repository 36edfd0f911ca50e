// Journal: the durable state of a coordinator: the number of its last epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::cluster {

// A file of one line, replaced at every epoch. Without a path it does nothing. Not thread-safe.
class Journal {
 public:
  // Takes the file's lock and reads it; without a file the last epoch is 0. Errors: kBusy when another
  // coordinator has it; kCorrupt when it is no journal; kIo.
  static Result<Journal> open(const std::string& path);
  int64_t last_epoch() const { return last_epoch_; }
  // Writes the number of the last epoch; durable when it returns. Errors: kIo.
  Status record(int64_t epoch);

 private:
  std::string path_;
  std::unique_ptr<io::FileLock> lock_;
  int64_t last_epoch_ = 0;
};

}  // namespace ostro::cluster
