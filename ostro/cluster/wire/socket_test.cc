// Connecting to a place again and again: what is known of its addresses, and which are tried.
#include "ostro/cluster/wire/socket.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/net/listen.h"

namespace ostro::cluster {
namespace {

// Listens, with room for no connection that is not accepted: the system answers none that comes.
struct Silent {
  Silent() {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    for (int i = 0; i < 4; ++i) {
      Socket filler(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      (void)::connect(filler.fd(), reinterpret_cast<const sockaddr*>(&address), size);
      pollfd wait{filler.fd(), POLLOUT, 0};
      (void)::poll(&wait, 1, 50);
      fillers.push_back(std::move(filler));
    }
  }
  Socket listener{open_listener("127.0.0.1", {}, 0).value()};
  std::vector<Socket> fillers;
};

// The addresses of these ports on this machine, as those of one name.
AddressList list_of(const std::vector<int>& ports) {
  struct Addresses {
    std::vector<AddressList> owners;
    std::vector<addrinfo> list;
  };
  auto all = std::make_shared<Addresses>();
  for (const int port : ports) {
    all->owners.push_back(look_up("127.0.0.1", port).value());
    all->list.push_back(*all->owners.back());
    all->list.back().ai_next = nullptr;
  }
  for (size_t i = 1; i < all->list.size(); ++i) all->list[i - 1].ai_next = &all->list[i];
  return {all, all->list.data()};
}

TEST_CASE("addresses that are known are used while the name has none") {
  const Socket listener(open_listener("127.0.0.1", {}, 8).value());
  KnownAddresses known{list_of({port_of(listener)}), 0};
  const auto connected =
      connect_to("nowhere.invalid", port_of(listener), Clock::now() + std::chrono::minutes(5), &known);
  CHECK_MESSAGE(connected.ok(), (connected.ok() ? "" : connected.error().message()));
  const auto control = connect_to("nowhere.invalid", port_of(listener), Clock::now());
  REQUIRE(!control.ok());
  CHECK(control.error().message().find("host 'nowhere.invalid': ") != std::string::npos);
}

// Each attempt has time for two of four addresses.
TEST_CASE("short attempts come to each address in turn, and then begin with the one that answered") {
  const Silent one, two, three;
  const Socket listener(open_listener("127.0.0.1", {}, 8).value());
  KnownAddresses known{
      list_of({port_of(one.listener), port_of(two.listener), port_of(three.listener), port_of(listener)}), 0};
  const auto attempt = [&] {
    return connect_to("nowhere.invalid", 1, Clock::now() + std::chrono::milliseconds(1100), &known).ok();
  };
  CHECK(!attempt());
  CHECK(known.first > 0);
  bool reached = false;
  for (int i = 0; i < 50 && !reached; ++i) reached = attempt();
  REQUIRE(reached);
  CHECK(known.first == 3);
  CHECK(connect_to("nowhere.invalid", 1, Clock::now() + std::chrono::minutes(5), &known).ok());
  CHECK(known.first == 3);
}

}  // namespace
}  // namespace ostro::cluster
