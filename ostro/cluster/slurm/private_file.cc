#include "ostro/cluster/slurm/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ostro::cluster {

Status write_private_file(const std::string& path, std::string_view text) {
  const std::string made = path + ".tmp";
  ::unlink(made.c_str());
  const int fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool good = fd >= 0;
  for (size_t done = 0; good && done < text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (good) done += static_cast<size_t>(n);
  }
  good = good && ::fsync(fd) == 0;
  int failed = errno;
  if (fd >= 0) ::close(fd);
  if (good && ::rename(made.c_str(), path.c_str()) == 0) return {};
  if (good) failed = errno;
  if (fd >= 0) ::unlink(made.c_str());
  return io_error(fmt::format("{}: {}", path, std::strerror(failed)));
}

}  // namespace ostro::cluster
