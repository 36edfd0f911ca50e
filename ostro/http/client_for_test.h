// Client: speaks bytes to a server on this machine, for tests. answer: what a request gets.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
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

 private:
  int socket_;
};

inline std::string answer(int port, const std::string& request) {
  Client client(port);
  client.say(request);
  return client.hear();
}

}  // namespace ostro::http
