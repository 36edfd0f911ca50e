// Addresses and ranges as texts, names that get an address late, and ports of a range.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <tuple>
#include <vector>

#include "ostro/base/net/free_ports_for_test.h"
#include "ostro/base/net/host_port.h"
#include "ostro/base/net/listen.h"
#include "ostro/base/net/look_up.h"

namespace ostro {
namespace {

TEST_CASE("addresses are read and written, of IPv6 in brackets") {
  for (const auto& [text, host, port] : {std::tuple{"10.0.0.1:4711", "10.0.0.1", 4711},
                                         {"[::1]:0", "::1", 0},
                                         {"node-3.x:65535", "node-3.x", 65535},
                                         {"[fe80::2%eth0]:80", "fe80::2%eth0", 80}}) {
    const auto read = parse_host_port(text);
    REQUIRE(read.ok());
    CHECK(read->host == host);
    CHECK(read->port == port);
    CHECK(host_and_port(read->host, read->port) == text);
  }
  const auto error = [](const char* text) {
    const auto read = parse_host_port(text);
    return read.ok() ? "" : read.error().message();
  };
  const std::string end = "; an address is HOST:PORT, as 127.0.0.1:8080";
  CHECK(error("node") == "node: no port" + end);
  CHECK(error("[::1]") == "[::1]: no port" + end);
  CHECK(error(":80") == ":80: no host" + end);
  CHECK(error("::1:80") == "::1:80: an IPv6 address stands in brackets" + end);
  for (const char* port : {"a:", "a:65536", "a:-1", "a:+1", "a: 1", "a:1x"})
    CHECK(error(port) == std::string(port) + ": the port is not a number from 0 to 65535" + end);
}

TEST_CASE("ranges of ports are read and written") {
  CHECK(parse_ports("29500-29999").value() == PortRange{29500, 29999});
  CHECK(parse_ports("1").value() == PortRange{1, 1});
  CHECK(PortRange{29500, 29999}.count() == 500);
  for (const char* text : {"29500-29999", "65535"}) CHECK(ports_text(*parse_ports(text)) == text);
  for (const char* text : {"", "-", "0", "0-3", "5-4", "1-65536", "1-2-3", "a-b", "1 - 2", "-5", "5-"}) {
    const auto read = parse_ports(text);
    REQUIRE(!read.ok());
    CHECK(read.error().message().find(std::string(text) + ": is no range of ports; it is FIRST-LAST") == 0);
  }
}

int port_of_listener(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0);
  return ntohs(name.sin_port);
}

TEST_CASE("each process gets a port of the range, and one too many learns which range it is") {
  // Others may take a port between the search and its use: then another range is tried.
  for (int attempt = 0;; ++attempt) {
    const PortRange ports = free_ports(3);
    std::vector<int> open;
    for (int i = 0; i < 3; ++i)
      if (const auto fd = open_listener("127.0.0.1", ports, 1); fd.ok()) open.push_back(*fd);
    const auto none = open_listener("127.0.0.1", ports, 1);
    std::vector<int> got;
    for (const int fd : open) got.push_back(port_of_listener(fd));
    for (const int fd : open) ::close(fd);
    if (open.size() < 3 && attempt < 20) continue;
    CHECK(got == std::vector<int>{ports.first, ports.first + 1, ports.first + 2});
    REQUIRE(!none.ok());
    CHECK(none.error().code() == ErrorCode::kBusy);
    CHECK(none.error().message().find("all 3 ports of " + ports_text(ports) + " are in use") !=
          std::string::npos);
    break;
  }
}

TEST_CASE("a connection that is left does not keep a port that the system chose from the next listener") {
  const auto first = open_listener("127.0.0.1", {}, 1);
  REQUIRE(first.ok());
  const int port = port_of_listener(*first);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  const int from = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(from, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  const int came = ::accept(*first, nullptr, nullptr);
  REQUIRE(came >= 0);
  ::close(came), ::close(*first);  // its half of the connection waits for the other one
  const auto next = open_listener("127.0.0.1", {port, port}, 1);
  CHECK_MESSAGE(next.ok(), (next.ok() ? "" : next.error().message()));
  if (next.ok()) ::close(*next);
  ::close(from);
}

TEST_CASE("any address takes connections of IPv4, and hosts of others are refused") {
  const auto any = open_listener(kAnyAddress, {}, 1);
  REQUIRE_MESSAGE(any.ok(), (any.ok() ? "" : any.error().message()));
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  REQUIRE(::getsockname(*any, reinterpret_cast<sockaddr*>(&name), &size) == 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(name).sin_port;
  const int from = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(::connect(from, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  ::close(from);
  ::close(*any);
  for (const char* host : {"any", "::", "0.0.0.0", "0", "0.0", "::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"})
    CHECK_MESSAGE(is_any_address(host), host);
  for (const char* host : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost", ""})
    CHECK_MESSAGE(!is_any_address(host), host);
  for (const char* host : {"192.0.2.1", "256.1.1.1", "nowhere.invalid"}) {
    const auto wrong = open_listener(host, {}, 1);
    REQUIRE(!wrong.ok());
    CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("a name without an address is waited for, and what is none is not") {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const auto never = look_up_late("nowhere.invalid", 1, "the coordinator nowhere.invalid:1", deadline);
  REQUIRE(!never.ok());
  CHECK(never.error().code() == ErrorCode::kIo);
  CHECK(std::chrono::steady_clock::now() >= deadline);
  CHECK(never.error().message().find("the coordinator nowhere.invalid:1: host 'nowhere.invalid': ") == 0);
  CHECK(never.error().message().find("; asked ") != std::string::npos);
  const auto far = std::chrono::steady_clock::now() + std::chrono::hours(1);
  for (const char* text : {"256.1.1.1", "::1::", "a b", ""}) {
    const auto none = look_up_late(text, 1, "it", far);
    REQUIRE(!none.ok());
    CHECK(none.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK(look_up_late("::1", 1, "it", far).ok());
}

TEST_CASE("a resolver that has not answered is not waited for, and what it finds is the next answer") {
  const auto now = std::chrono::steady_clock::now(), far = now + std::chrono::hours(1);
  const auto early = look_up_until("localhost", 7, now);
  if (!early.ok()) {
    CHECK(early.error().code() == ErrorCode::kNotFound);
    CHECK(early.error().message() == "host 'localhost': the system's resolver has not answered yet");
  }
  for (int i = 0; i < 2; ++i) {
    const auto found = look_up_until("localhost", 7, far);
    REQUIRE(found.ok());
    CHECK(is_loopback(*(*found)->ai_addr));
  }
  CHECK(look_up_until("127.0.0.1", 7, now).ok());  // needs no resolver
  CHECK(look_up_until("256.1.1.1", 7, far).error().code() == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ostro
