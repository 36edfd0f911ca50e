#include "ostro/run/report/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "ostro/base/watch/said.h"

namespace ostro::run {
namespace {

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f) c = ' ';
  return out;
}

}  // namespace

std::string fitted(std::string_view line, int columns) {
  // One column stays free: a line as wide as the terminal would wrap and could not be erased. Lines are
  // ASCII.
  const auto room = static_cast<size_t>(columns > 1 ? columns - 1 : 1);
  while (line.size() > room) {
    const size_t field = line.rfind("  ");
    if (field == std::string_view::npos || line.find_first_not_of(' ') > field)
      return std::string(line.substr(0, room));
    line = line.substr(0, field);
  }
  return std::string(line);
}

std::string erase_line(size_t length, int columns) {
  const size_t rows_above = columns > 0 && length > 0 ? (length - 1) / static_cast<size_t>(columns) : 0;
  if (rows_above == 0) return "\r\x1b[K";
  return fmt::format("\r\x1b[{}A\x1b[J", rows_above);
}

Console::Console(Write write, Columns columns)
    : write_(std::move(write)), columns_(std::move(columns)), is_terminal_(columns_() > 0) {}

Console::~Console() {
  if (!status_.empty()) write_("\n");
}

std::string Console::erased() const { return erase_line(status_.size(), columns_()); }

void Console::line(std::string_view text) {
  const std::string clean = printable(text);
  const std::lock_guard lock(mutex_);
  if (status_.empty()) return write_(clean + "\n");
  const std::string erase = erased();
  status_ = fitted(status_, columns_());
  write_(erase + clean + "\n" + status_);
}

void Console::status(std::string_view text) {
  if (!is_terminal()) return;
  std::string clean = fitted(printable(text), columns_());
  const std::lock_guard lock(mutex_);
  if (clean == status_) return;
  const std::string erase = erased();
  status_ = std::move(clean);
  write_(erase + status_);
}

Console::Write stderr_writer() {
  return [](std::string_view text) {
    add_said(text);
    while (!text.empty()) {
      const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
      if (n <= 0) return;  // the reader has gone; training continues
      text.remove_prefix(static_cast<size_t>(n));
    }
  };
}

int stderr_columns() {
  const char* term = std::getenv("TERM");
  if (::isatty(STDERR_FILENO) == 0) {
    // A launcher passes on what this process writes to its own terminal, of this width.
    const char* columns = std::getenv("OSTRO_COLUMNS");
    const int wide = columns == nullptr ? 0 : std::atoi(columns);
    return wide >= 2 && wide <= 10'000 ? wide : 0;
  }
  if (term != nullptr && std::string_view(term) == "dumb") return 0;
  constexpr int kUsual = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return kUsual;
  return size.ws_col;
}

}  // namespace ostro::run
