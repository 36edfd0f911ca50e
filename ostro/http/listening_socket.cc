#include "ostro/http/listening_socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ostro::http {

// Made here, because libmicrohttpd does not say why it could not make one.
Result<int> listening_socket(const Address& address) {
  const auto failed = [&](int socket) {
    const int error = errno;
    if (socket >= 0) ::close(socket);
    return io_error(fmt::format("cannot listen at {}: {}", host_and_port(address.host, address.port),
                                std::strerror(error)));
  };
  constexpr int kBacklog = 128;
  const int socket = ::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address.socket), address.size) != 0 ||
      ::listen(socket, kBacklog) != 0)
    return failed(socket);
  return socket;
}

int port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

}  // namespace ostro::http
