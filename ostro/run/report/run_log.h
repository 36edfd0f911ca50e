// log.txt: the human log of a run, beside the console.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "ostro/base/log.h"
#include "ostro/io/files/file_system.h"
#include "ostro/run/report/console.h"

namespace ostro::run {

// RunLog is the log sink while it exists. Every line goes to the console and, with time and level, to
// log.txt. On the console, warnings and errors have a prefix. Any thread may log.
//
// The object is made before the run directory exists. Lines are kept in memory until open() is called, so
// messages about opening the run also reach the file. The destructor restores the previous sink. `console`
// must outlive it.
class RunLog {
 public:
  explicit RunLog(Console& console);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Appends to the file at `path` from now on. The kept lines are written first. Call it once.
  // Error: the file cannot be opened.
  Status open(io::FileSystem& fs, const std::string& path);

  // Writes a line to the file only.
  void to_file(LogLevel level, std::string_view line);

 private:
  void write(std::string_view text);  // requires mutex_

  std::mutex mutex_;
  std::string kept_;  // lines from before open()
  bool opened_ = false;
  // null before open(), and after a write error (the console shows that error)
  std::unique_ptr<io::WritableFile> file_;
  Console& console_;
  LogSink before_;
};

}  // namespace ostro::run
