#include "ostro/cluster/slurm/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
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

Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return {};
  if (errno != EEXIST) return io_error(fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return io_error(fmt::format("{}: {}", path, std::strerror(errno)));
  if (!S_ISDIR(found.st_mode))
    return invalid_argument(
        fmt::format("{}: it is no folder, but a link or a file; remove it, or name another folder", path));
  if (found.st_uid != ::geteuid())
    return invalid_argument(
        fmt::format("{}: the folder belongs to user {}, and this is user {}; name another", path,
                    found.st_uid, ::geteuid()));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return invalid_argument(
        fmt::format("{}: others can write the folder (mode {:o}), and so what jobs run; `chmod 700` it if "
                    "what is in it is yours",
                    path, found.st_mode & 07777U));
  return {};
}

std::optional<std::string> read_private_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat found{};
  std::optional<std::string> text;
  if (::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == ::geteuid() &&
      (found.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
    text.emplace();
    std::array<char, 4096> some{};
    ssize_t n = 0;
    while ((n = ::read(fd, some.data(), some.size())) > 0 || (n < 0 && errno == EINTR))
      if (n > 0) text->append(some.data(), static_cast<size_t>(n));
  }
  ::close(fd);
  return text;
}

}  // namespace ostro::cluster
