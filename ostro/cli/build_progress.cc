#include "ostro/cli/build_progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ostro::cli {

BuildProgressLine::Output BuildProgressLine::standard_error() {
  return {.file = stderr, .is_terminal = isatty(STDERR_FILENO) != 0};
}

BuildProgressLine::BuildProgressLine(std::string name, Output output)
    : name_(name.empty() ? "tokenizing" : std::move(name)),
      output_(std::move(output)),
      begin_(output_.now()),
      drawn_(begin_) {}

std::function<void(const data::BuildProgress&)> BuildProgressLine::callback() {
  return [this](const data::BuildProgress& p) { draw(p); };
}

void BuildProgressLine::draw(const data::BuildProgress& p) {
  const Clock::time_point now = output_.now();
  const bool ends_line = output_.is_terminal && p.bytes_done >= p.bytes_total;
  const auto pause = output_.is_terminal ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30'000);
  if (!ends_line && now - drawn_ < pause) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(p.bytes_done - p.bytes_resumed) / std::max(seconds, 1e-3);
  const double left = rate > 0 ? static_cast<double>(p.bytes_total - p.bytes_done) / rate : 0;
  const double percent = p.bytes_total > 0
                             ? 100.0 * static_cast<double>(p.bytes_done) / static_cast<double>(p.bytes_total)
                             : 100.0;
  const std::string text = fmt::format(
      "{}: {:5.1f}%  {} of {} files  {} documents  {:.1f}M tokens  {:.1f} of {:.1f} MB  {:.1f} MB/s  "
      "{}:{:02} left",
      name_, percent, p.files_done, p.files_total, p.documents, static_cast<double>(p.tokens) * 1e-6,
      static_cast<double>(p.bytes_done) * 1e-6, static_cast<double>(p.bytes_total) * 1e-6, rate * 1e-6,
      static_cast<int64_t>(left) / 60, static_cast<int64_t>(left) % 60);
  std::fputs((output_.is_terminal ? "\r" + text + " " : text + "\n").c_str(), output_.file);
  std::fflush(output_.file);
  shown_ = output_.is_terminal;
}

void BuildProgressLine::end() {
  if (shown_) std::fputc('\n', output_.file);
  shown_ = false;
}

}  // namespace ostro::cli
