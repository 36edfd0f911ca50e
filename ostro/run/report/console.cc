#include "ostro/run/report/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace ostro::run {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
  return out;
}

}  // namespace

Console::Console(Write write, int columns) : write_(std::move(write)), columns_(columns) {}

Console::~Console() {
  if (!status_.empty()) write_("\n");
}

void Console::line(std::string_view text) {
  const std::string clean = printable(text);
  const std::lock_guard lock(mutex_);
  if (status_.empty()) return write_(clean + "\n");
  write_(std::string(kEraseLine) + clean + "\n" + status_);
}

void Console::status(std::string_view text) {
  if (!is_terminal()) return;
  // Keep one column free: a line as wide as the terminal would wrap and could not be erased. Status lines are
  // ASCII.
  std::string clean = printable(text.substr(0, static_cast<size_t>(columns_ - 1)));
  const std::lock_guard lock(mutex_);
  if (clean == status_) return;
  status_ = std::move(clean);
  write_(std::string(kEraseLine) + status_);
}

Console::Write stderr_writer() {
  return [](std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
      if (n <= 0) return;  // the reader has gone; training continues
      text.remove_prefix(static_cast<size_t>(n));
    }
  };
}

int stderr_columns() {
  const char* term = std::getenv("TERM");
  if (::isatty(STDERR_FILENO) == 0 || (term != nullptr && std::string_view(term) == "dumb")) return 0;
  constexpr int kUsual = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return kUsual;
  return size.ws_col;
}

}  // namespace ostro::run
