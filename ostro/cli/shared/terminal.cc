#include "ostro/cli/shared/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

namespace ostro::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int columns_of_stdout() {
  constexpr int kUsual = 80, kMost = 1000;
  const std::string given = variable("COLUMNS");
  int columns = 0;
  const auto read = std::from_chars(given.data(), given.data() + given.size(), columns);
  if (read.ec == std::errc() && read.ptr == given.data() + given.size() && columns > 0)
    return std::min(columns, kMost);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return std::min<int>(size.ws_col, kMost);
}

bool locale_is_utf8() {
  std::string locale = variable("LC_ALL");
  if (locale.empty()) locale = variable("LC_CTYPE");
  if (locale.empty()) locale = variable("LANG");
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

}  // namespace

page::Terminal stdout_terminal(bool ascii) {
  const bool colour =
      ::isatty(STDOUT_FILENO) != 0 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  return {columns_of_stdout(), ascii || !locale_is_utf8(), colour};
}

}  // namespace ostro::cli
