// log.txt: the human log of a run, beside the console.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ostro/base/log.h"
#include "ostro/io/files/file_system.h"
#include "ostro/train/report/console.h"

namespace ostro::train {

// The log sink while it lives: every line but debug lines goes to the console (warnings and errors say so)
// and, with time and level, to log.txt. It begins before there is a run directory to write to, so that what
// opening the run has to say is not lost: lines are kept until open(). The destructor brings back the sink
// from before. Refers to `console`.
class RunLog {
 public:
  explicit RunLog(Console& console);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Goes on in the file at `path`, behind what it holds; the kept lines come first. Once.
  Status open(io::FileSystem& fs, const std::string& path);

  // A line for the file alone.
  void to_file(LogLevel level, std::string_view line);

 private:
  void write(std::string_view text);  // with mutex_ held

  std::mutex mutex_;
  std::string kept_;  // lines from before open()
  bool opened_ = false;
  std::unique_ptr<io::WritableFile>
      file_;  // null before open() and after an error, which the console was told
  Console& console_;
  LogSink before_;
};

}  // namespace ostro::train
