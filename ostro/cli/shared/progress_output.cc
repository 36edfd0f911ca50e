#include "ostro/cli/shared/progress_output.h"

#include <algorithm>

#include "ostro/run/report/console.h"

namespace ostro::cli {

ProgressOutput ProgressOutput::standard_error() { return {stderr, run::stderr_columns() > 0, Clock::now}; }

ProgressOutput::ProgressOutput(std::FILE* file, bool is_terminal, std::function<Clock::time_point()> now)
    : file_(file), is_terminal_(is_terminal), now_(std::move(now)), drawn_(now_()) {}

bool ProgressOutput::is_due(bool last) {
  const Clock::time_point now = now_();
  const auto pause = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30'000);
  if (!(last && is_terminal_) && now - drawn_ < pause) return false;
  drawn_ = now;
  return true;
}

void ProgressOutput::show(const std::string& line) {
  std::string text = is_terminal_ ? "\r" + line : line;
  if (line.size() < shown_) text.append(shown_ - line.size(), ' ');
  if (!is_terminal_) text += '\n';
  std::fputs(text.c_str(), file_);
  std::fflush(file_);
  shown_ = is_terminal_ ? line.size() : 0;
}

void ProgressOutput::end() {
  if (shown_ > 0) std::fputc('\n', file_);
  shown_ = 0;
}

}  // namespace ostro::cli
