// Client: speaks bytes to a server on this machine, for tests. answer: what a request gets.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

namespace ostro::http {

class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  }
  ~Client() { ::close(socket_); }
  void say(const std::string& text) { (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // All that comes until the server ends the connection.
  std::string hear() {
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      out.append(buffer, static_cast<size_t>(n));
    return out;
  }
  // What comes up to this text, which is a part of it.
  std::string hear_until(const std::string& text) {
    std::string out;
    char buffer[4096];
    for (ssize_t n;
         out.find(text) == std::string::npos && (n = ::recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      out.append(buffer, static_cast<size_t>(n));
    return out;
  }

 protected:
  explicit Client(int family, const sockaddr* to, socklen_t size)
      : socket_(::socket(family, SOCK_STREAM, 0)) {
    REQUIRE(::connect(socket_, to, size) == 0);
  }

 private:
  int socket_;
};

// The same of a server at a Unix socket.
class UnixClient : public Client {
 public:
  explicit UnixClient(const std::string& path) : UnixClient(name_of(path)) {}

 private:
  explicit UnixClient(const sockaddr_un& to)
      : Client(AF_UNIX, reinterpret_cast<const sockaddr*>(&to), sizeof to) {}
  static sockaddr_un name_of(const std::string& path) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    return to;
  }
};

inline std::string answer(int port, const std::string& request) {
  Client client(port);
  client.say(request);
  return client.hear();
}

}  // namespace ostro::http
