// log_line: the log of the process.
//
// Libraries pass lines to the log sink and never print themselves. main (or a test) decides where lines go;
// the default sink writes to stderr. Thread-safe: the sink is called by one thread at a time. A line that is
// logged while the same thread is inside the sink goes to stderr.
#pragma once

#include <functional>
#include <string_view>

namespace ostro {

enum class LogLevel { kInfo, kWarning, kError };

using LogSink = std::function<void(LogLevel, std::string_view line)>;

// Replaces the sink and returns the previous one. A sink must not call this.
LogSink set_log_sink(LogSink sink);

// Passes one line, without a line end, to the sink.
void log_line(LogLevel level, std::string_view line);

inline void log_info(std::string_view line) { log_line(LogLevel::kInfo, line); }
inline void log_warning(std::string_view line) { log_line(LogLevel::kWarning, line); }
inline void log_error(std::string_view line) { log_line(LogLevel::kError, line); }

}  // namespace ostro
