#include "ostro/cli/build_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ostro::cli {

std::function<void(const data::BuildProgress&)> BuildProgressLine::callback() {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [this](const data::BuildProgress& p) { draw(p); };
}

void BuildProgressLine::draw(const data::BuildProgress& p) {
  const Clock::time_point now = Clock::now();
  if (p.bytes_done < p.bytes_total && now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(p.bytes_done - p.bytes_resumed) / std::max(seconds, 1e-3);
  const double left = rate > 0 ? static_cast<double>(p.bytes_total - p.bytes_done) / rate : 0;
  const double percent = p.bytes_total > 0
                             ? 100.0 * static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes_total)
                             : 100.0;
  fmt::print(stderr,
             "\r{}{:5.1f}%  {} of {} files  {} documents  {:.1f}M tokens  {:.1f} MB/s  {}:{:02} left ",
             name_.empty() ? "tokenizing: " : name_ + ": ", percent, p.files_done, p.files_total, p.documents,
             static_cast<double>(p.tokens) * 1e-6, rate * 1e-6, static_cast<int64_t>(left) / 60,
             static_cast<int64_t>(left) % 60);
  shown_ = true;
}

void BuildProgressLine::end() {
  if (shown_) std::fputc('\n', stderr);
  shown_ = false;
}

}  // namespace ostro::cli
