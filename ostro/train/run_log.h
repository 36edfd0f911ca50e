// log.txt: the human log of a run, beside the console.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ostro/base/log.h"
#include "ostro/io/file_system.h"
#include "ostro/train/console.h"

namespace ostro::train {

// The log sink while it lives: every line but debug lines goes to log.txt with time and level, and to the
// console (warnings and errors say so). The destructor brings back the sink from before. Refers to `console`.
class RunLog {
 public:
  static Result<std::unique_ptr<RunLog>> open(io::FileSystem& fs, const std::string& path, Console& console);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // A line for the file alone.
  void to_file(LogLevel level, std::string_view line);

 private:
  RunLog(std::unique_ptr<io::WritableFile> file, Console& console);

  std::mutex mutex_;
  std::unique_ptr<io::WritableFile> file_;  // null after an error, which the console was told
  Console& console_;
  LogSink before_;
};

}  // namespace ostro::train
