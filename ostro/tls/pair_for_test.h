// TestPair: two ends of a connection within the process, with a session on each, for tests.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "ostro/tls/session.h"

namespace ostro::tls {

inline std::string text_of(const Error& error) { return error.message(); }

struct TestPair {
  std::array<int, 2> fds{-1, -1};  // the one that connects, the one that accepts
  std::unique_ptr<Session> connects, accepts;

  TestPair() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
  }
  TestPair(Certificates& a, Certificates& b) : TestPair() {
    connects = std::make_unique<Session>(a, fds[0], Side::kConnects);
    accepts = std::make_unique<Session>(b, fds[1], Side::kAccepts);
  }
  ~TestPair() {
    connects.reset();
    accepts.reset();
    close(0);
    close(1);
  }
  TestPair(const TestPair&) = delete;
  TestPair& operator=(const TestPair&) = delete;
  void close(size_t i) {
    if (fds[i] >= 0) ::close(fds[i]);
    fds[i] = -1;
  }
  void send(size_t i, std::string_view bytes) const {
    REQUIRE(::send(fds[i], bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  std::string receive(size_t i) const {
    std::string bytes(100'000, '\0');
    const ssize_t got = ::recv(fds[i], bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  }

  // The errors of both sides, the one that connects first, when none of them gets on.
  std::array<std::optional<Error>, 2> shake() {
    std::array<std::optional<Error>, 2> errors;
    for (int turn = 0; turn < 20; ++turn)
      for (size_t i = 0; i < 2; ++i) {
        Session& side = i == 0 ? *connects : *accepts;
        if (errors[i] || side.established()) continue;
        const auto done = side.handshake();
        if (!done.ok()) errors[i] = done.error();
      }
    return errors;
  }
};

inline std::shared_ptr<Certificates> certificates_of(const std::string& secret,
                                                     std::function<Time()> now = {}) {
  auto made = Certificates::of_job(secret, std::move(now));
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message()));
  return std::move(*made);
}

// What comes now, at most so many bytes.
inline Result<std::string> read_text(Session& session, size_t most = 100'000) {
  std::string text(most, '\0');
  const auto got = session.read(text);
  if (!got.ok()) return got.error();
  text.resize(got->bytes);
  return text;
}

}  // namespace ostro::tls
