#include "ostro/cli/shared/standard_streams.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ostro::cli {
namespace {
bool closed = false;
}

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

}  // namespace ostro::cli
