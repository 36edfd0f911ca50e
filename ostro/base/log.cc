#include "ostro/base/log.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "ostro/base/watch/said.h"

namespace ostro {
namespace {

void write_to_stderr(LogLevel level, std::string_view line) {
  const char* prefix = level == LogLevel::kWarning ? "warning: " : level == LogLevel::kError ? "error: " : "";
  const std::string text = prefix + std::string(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  add_said(text);
}

std::mutex& mutex() {
  static std::mutex m;
  return m;
}

thread_local bool is_in_sink = false;

LogSink& sink() {
  static LogSink s = write_to_stderr;
  return s;
}

}  // namespace

LogSink set_log_sink(LogSink replacement) {
  std::lock_guard lock(mutex());
  std::swap(sink(), replacement);
  return replacement;
}

void log_line(LogLevel level, std::string_view line) {
  // What a sink does may fail and be logged (a log file in an object store): that line cannot go the same
  // way.
  if (is_in_sink) return write_to_stderr(level, line);
  std::lock_guard lock(mutex());
  struct InSink {
    InSink() { is_in_sink = true; }
    ~InSink() { is_in_sink = false; }
  } const now;
  sink()(level, line);
}

}  // namespace ostro
