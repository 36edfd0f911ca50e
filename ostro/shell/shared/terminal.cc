#include "ostro/shell/shared/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ostro/base/object_cache.h"

namespace ostro::cli {
namespace {

int columns_of_stdout() {
  constexpr int kUsual = 80, kMost = 1000;
  const std::string given = environment_variable("COLUMNS");
  int columns = 0;
  const auto read = std::from_chars(given.data(), given.data() + given.size(), columns);
  if (read.ec == std::errc() && read.ptr == given.data() + given.size() && columns > 0)
    return std::min(columns, kMost);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::min<int>(size.ws_col, kMost);
}

bool locale_is_utf8() {
  std::string locale = environment_variable("LC_ALL");
  if (locale.empty()) locale = environment_variable("LC_CTYPE");
  if (locale.empty()) locale = environment_variable("LANG");
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

bool closed = false;

}  // namespace

bool stdout_closed() { return closed; }

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, n);
  if (std::ferror(stdin))
    return io_error(fmt::format("standard input: cannot read: {}", std::strerror(errno)));
  return text;
}

Status write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  const int error = errno;
  std::clearerr(stdout);  // told once, here
  if (error == EPIPE) {
    closed = true;
    return {};
  }
  return io_error(fmt::format("standard output: cannot write: {}", std::strerror(error)));
}

page::Terminal stdout_terminal(bool ascii) {
  const bool colour = ::isatty(STDOUT_FILENO) != 0 && environment_variable("NO_COLOR").empty() &&
                      environment_variable("TERM") != "dumb";
  return {columns_of_stdout(), ascii || !locale_is_utf8(), colour};
}

}  // namespace ostro::cli
