#include "ostro/http/listening_socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ostro::http {

namespace {

constexpr mode_t kOwnerAndGroup = 0660;

// A server that was killed leaves its socket behind. It is removed where nothing listens at it; anything else
// at this path stays.
void remove_left_socket(const Address& address) {
  struct stat there{};
  if (::lstat(address.host.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe >= 0 && ::connect(probe, reinterpret_cast<const sockaddr*>(&address.socket), address.size) != 0 &&
      errno == ECONNREFUSED)
    ::unlink(address.host.c_str());
  if (probe >= 0) ::close(probe);
}

}  // namespace

// Made here, because libmicrohttpd does not say why it could not make one.
Result<int> listening_socket(const Address& address) {
  const auto failed = [&](int socket) {
    const int error = errno;
    if (socket >= 0) ::close(socket);
    return io_error(
        fmt::format("cannot listen at {}: {}", address_text(address, address.port), std::strerror(error)));
  };
  constexpr int kBacklog = 128;
  if (address.is_unix()) remove_left_socket(address);
  const int socket = ::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address.socket), address.size) != 0)
    return failed(socket);
  if ((address.is_unix() && ::chmod(address.host.c_str(), kOwnerAndGroup) != 0) ||
      ::listen(socket, kBacklog) != 0) {
    auto error = failed(socket);
    if (address.is_unix()) ::unlink(address.host.c_str());
    return error;
  }
  return socket;
}

int port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  if (name.ss_family == AF_UNIX) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

}  // namespace ostro::http
