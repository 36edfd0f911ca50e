// Groups whose workers listen at given ports, are told other hosts, have addresses of IPv6, or connect
// through a relay.
#include "ostro/dist/reach.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "ostro/base/net/free_ports_for_test.h"
#include "ostro/base/net/listen.h"
#include "ostro/dist/gloo_play_for_test.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;

TEST_CASE("advertised hosts are read, and what is none is named") {
  const auto read = [](const char* text) { return parse_advertised(text).value(); };
  for (const auto& [text, host] : {std::pair{"node3", "node3"},
                                   {"10.0.0.1", "10.0.0.1"},
                                   {"::1", "::1"},
                                   {"[2001:db8::1]", "2001:db8::1"}}) {
    CHECK(read(text).host == host);
    CHECK(!read(text).ports);
  }
  CHECK(read("node3:40000-40009").host == "node3");
  CHECK(read("node3:40000-40009").ports == PortRange{40000, 40009});
  CHECK(read("[::1]:7").host == "::1");
  CHECK(read("[::1]:7").ports == PortRange{7, 7});
  for (const char* text : {"", ":", "a:", "a:0", "a:9-8", "[::1]x", "[::1", "[]:3", "a b", "a]"}) {
    const auto wrong = parse_advertised(text);
    CHECK_MESSAGE(!wrong.ok(), text);
    if (!wrong.ok()) CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("the n-th advertised port is that of the n-th port of the range") {
  Reach reach;
  reach.ports = free_ports(2);
  reach.advertised = parse_advertised("gate:40000-40001").value();
  const auto one = listen_at(reach, 1), two = listen_at(reach, 1);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(one->host == "gate");
  CHECK(one->port == "40000");
  CHECK(two->port == "40001");
  const Status third = check_reach(reach);
  REQUIRE(!third.ok());
  CHECK(third.error().code() == ErrorCode::kBusy);
  CHECK_MESSAGE(
      third.error().message().find("all 2 ports of " + ports_text(reach.ports)) != std::string::npos,
      third.error().message());
  reach.advertised->ports = PortRange{40000, 40002};
  CHECK(check_reach(reach).error().message().find("3 and 2 ports") != std::string::npos);
  reach.ports = {};
  CHECK(check_reach(reach).error().message().find("trainer.worker_ports does not say") != std::string::npos);
  reach = {};
  reach.bind = kAnyAddress;
  CHECK(check_reach(reach).error().message().find("has no address to tell the others") != std::string::npos);
  reach.advertised = parse_advertised("node3").value();
  CHECK(check_reach(reach).ok());
  reach.use = RelayUse::kAlways;
  CHECK(check_reach(reach).error().message() ==
        "node3 is advertised, and with trainer.relay: always this worker does not listen; leave one out");
  reach.advertised.reset();
  CHECK(check_reach(reach).ok());
}

// The work of a group, whatever its connections.
Status work_some(Group& group) {
  RETURN_IF_ERROR(
      swap_checked(group, "x", [](int64_t from, int64_t to) { return 100'000 + 10 * from + to; }, 0));
  ASSIGN_OR_RETURN(const auto ranks, all(group, "x", group.rank()));
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != static_cast<int64_t>(i)) return corrupt("other ranks");
  return {};
}

// A group in which all work; the first error.
Status worked(int64_t workers, const std::function<GlooOptions(int64_t)>& options) {
  std::mutex mutex;
  Status first;
  play(
      line(workers),
      [&](int64_t, Result<std::unique_ptr<Group>> group) {
        const Status status = group.ok() ? work_some(**group) : Status(group.error());
        const std::lock_guard lock(mutex);
        if (first.ok()) first = status;
      },
      [&](int64_t rank) {
        GlooOptions given = options(rank);
        given.connect_timeout = std::chrono::minutes(2);
        return given;
      });
  return first;
}

TEST_CASE("groups one after the other use the same few ports") {
  const PortRange ports = free_ports(3);
  for (int round = 0; round < 5; ++round) {
    const Status status = worked(3, [&](int64_t) {
      GlooOptions options;
      options.reach.ports = ports;
      return options;
    });
    CHECK_MESSAGE(status.ok(), text_of(status));
  }
}

// A name with two addresses, as localhost often has, leads to the one at which the worker listens.
TEST_CASE("a group whose workers are told a name") {
  const auto named = worked(2, [](int64_t) {
    GlooOptions options;
    options.reach.bind = "127.0.0.1";
    options.reach.advertised = AdvertisedHost{"localhost", std::nullopt};
    return options;
  });
  CHECK_MESSAGE(named.ok(), text_of(named));
}

TEST_CASE("a group at addresses of IPv6") {
  if (!listen_at("::1", 1).ok()) {
    MESSAGE("this machine has no IPv6");
    return;
  }
  const auto status = worked(3, [](int64_t rank) {
    GlooOptions options;
    options.reach.bind = rank == 1 ? "127.0.0.1" : "::1";
    options.tls = true;
    options.secret = "secret";
    return options;
  });
  CHECK_MESSAGE(status.ok(), text_of(status));
}

TEST_CASE("a name that never gets an address is named when time is over") {
  const std::vector<std::string> errors = outcomes(2, [](int64_t) {
    GlooOptions options;
    options.reach.advertised = AdvertisedHost{"nowhere.invalid", std::nullopt};
    options.connect_timeout = milliseconds(500);
    return options;
  });
  CHECK_MESSAGE(errors[1].find("worker 1: no connection with worker 0 within 500 ms; its name has no address "
                               "yet: host 'nowhere.invalid': ") == 0,
                errors[1]);
}

// Joins two calls by pairs of sockets within the process.
class PairRelay final : public Relay {
 public:
  Result<std::unique_ptr<RelayCall>> call(const std::string& group, int64_t own, int64_t peer) override {
    const std::lock_guard lock(mutex_);
    const std::tuple key(group, std::min(own, peer), std::max(own, peer));
    auto& ends = ends_[key];
    if (!ends) {
      std::array<int, 2> fds{};
      REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
      ends = std::make_unique<std::array<Socket, 2>>(std::array{Socket(fds[0]), Socket(fds[1])});
      pairs.insert({std::min(own, peer), std::max(own, peer)});
    }
    return std::unique_ptr<RelayCall>(std::make_unique<Call>(std::move((*ends)[own < peer ? 0 : 1])));
  }
  std::set<std::pair<int64_t, int64_t>> pairs;

 private:
  class Call final : public RelayCall {
   public:
    explicit Call(Socket socket) : socket_(std::move(socket)) {}
    int fd() const override { return socket_.fd(); }
    bool wants_to_write() const override { return false; }
    Result<bool> turn() override { return true; }
    Socket take() override { return std::move(socket_); }

   private:
    Socket socket_;
  };
  std::mutex mutex_;
  std::map<std::tuple<std::string, int64_t, int64_t>, std::unique_ptr<std::array<Socket, 2>>> ends_;
};

TEST_CASE("one worker of three connects through a relay only, with and without TLS") {
  using Pairs = std::set<std::pair<int64_t, int64_t>>;
  for (const int64_t which : {int64_t{0}, int64_t{2}})
    for (const bool tls : {false, true}) {
      PairRelay relay;
      const Status status = worked(3, [&](int64_t rank) {
        GlooOptions options;
        options.reach.relay = &relay;
        if (rank == which) {
          options.reach.use = RelayUse::kAlways;
          options.reach.bind = "192.0.2.1";  // no address of this machine: it does not listen
        }
        options.secret = "secret";
        options.tls = tls;
        return options;
      });
      CHECK_MESSAGE(status.ok(), text_of(status));
      CHECK(relay.pairs == (which == 0 ? Pairs{{0, 1}, {0, 2}} : Pairs{{0, 2}, {1, 2}}));
    }
}

// Nothing listens at the port that worker 0 tells the others, as behind a firewall that refuses.
TEST_CASE("with auto the relay is between those who cannot connect, and between no others") {
  const PortRange nothing = free_ports(1), own = free_ports(1);
  const auto options_of = [&](Relay* relay, RelayUse use) {
    return [&, relay, use](int64_t rank) {
      GlooOptions options;
      options.reach.relay = relay;
      options.reach.use = use;
      if (rank == 0)
        options.reach.ports = own, options.reach.advertised = AdvertisedHost{"127.0.0.1", nothing};
      return options;
    };
  };
  PairRelay relay;
  const Status found = worked(3, options_of(&relay, RelayUse::kAuto));
  CHECK_MESSAGE(found.ok(), text_of(found));
  CHECK(relay.pairs == std::set<std::pair<int64_t, int64_t>>{{0, 1}, {0, 2}});
  // The control: without it they do not connect. Worker 0 waits until its time is over.
  PairRelay unused;
  const std::vector<std::string> errors = outcomes(2, [&](int64_t rank) {
    GlooOptions options = options_of(&unused, RelayUse::kNever)(rank);
    options.connect_timeout = rank == 0 ? milliseconds(500) : milliseconds(std::chrono::minutes(2));
    return options;
  });
  CHECK(errors[1] == "worker 1: lost worker 0: connecting to it: Connection refused");
  CHECK(unused.pairs.empty());
}

// A store that is far away: each answer takes a while, and a question that does not wait for it gets none.
class FarKeyValue final : public KeyValue {
 public:
  Status set(const std::string& key, std::string_view value) override { return near_.set(key, value); }
  Result<std::string> get(const std::string& key, milliseconds timeout) override {
    std::this_thread::sleep_for(std::min(timeout, kAway));
    if (timeout <= kAway) return busy("nothing came");
    return near_.get(key, timeout - kAway);
  }

 private:
  static constexpr milliseconds kAway{30};
  MemoryKeyValue near_;
};

// Two workers work through the relay: worker 0 tells `told`, where worker 1 does not reach it.
void check_relayed(const AdvertisedHost& told, const std::function<void(int64_t rank, GlooOptions&)>& more,
                   KeyValue* store = nullptr) {
  const PortRange own = free_ports(1);
  PairRelay relay;
  const std::vector<std::string> ends = outcomes(
      2,
      [&](int64_t rank) {
        GlooOptions options;
        options.reach.relay = &relay;
        options.connect_timeout = std::chrono::minutes(2);
        if (rank == 0) options.reach.ports = own, options.reach.advertised = told;
        more(rank, options);
        return options;
      },
      work_some, store);
  CHECK(ends == std::vector<std::string>{"works", "works"});
  CHECK(relay.pairs == std::set<std::pair<int64_t, int64_t>>{{0, 1}});
}

TEST_CASE("with auto workers whose store is far away, or who cannot resolve a name, find the relay") {
  for (const char* host : {"127.0.0.1", "nowhere.invalid"}) {
    FarKeyValue store;
    check_relayed(
        {host, free_ports(1)}, [](int64_t, GlooOptions& options) { options.reach.use = RelayUse::kAuto; },
        &store);
  }
}

// In which order workers join is chance, so it must not decide which of two options counts.
TEST_CASE("the relay is between two that cannot connect when either of them has auto") {
  for (const int64_t automatic : {int64_t{0}, int64_t{1}})
    check_relayed({"127.0.0.1", free_ports(1)}, [&](int64_t rank, GlooOptions& options) {
      if (rank == automatic) options.reach.use = RelayUse::kAuto;
    });
}

// Something accepts at the address of worker 0 and says nothing, as a firewall may whose machine is gone; or
// a program of another kind is there, which greets and waits.
TEST_CASE("with auto the relay is between those of whom one is accepted and hears no worker") {
  const Listener other = listen_at("127.0.0.1", 16).value();
  const int port = std::stoi(other.port);
  std::atomic<bool> stopped = false, greets = false;
  std::thread accepts([&] {
    std::vector<Socket> open;
    pollfd wait{other.socket.fd(), POLLIN, 0};
    while (!stopped) {
      if (::poll(&wait, 1, 10) <= 0) continue;
      open.push_back(accept_from(other));
      if (greets) CHECK(::send(open.back().fd(), "220 mail\r\n", 10, MSG_NOSIGNAL) == 10);
    }
  });
  for (const auto& [tls, greeting] : {std::pair(false, false), {true, false}, {false, true}}) {
    greets = greeting;
    check_relayed({"127.0.0.1", PortRange{port, port}}, [&, tls = tls](int64_t, GlooOptions& options) {
      options.reach.use = RelayUse::kAuto;
      options.secret = "secret";
      options.tls = tls;
      options.reach.patience = milliseconds(200);
    });
  }
  stopped = true;
  accepts.join();
}

// Another program is at the address that worker 0 tells the others, as another machine behind a gateway may
// be.
TEST_CASE("with auto the relay is between those of whom one reaches somebody else") {
  const Listener stranger = listen_at("127.0.0.1", 16).value();
  std::atomic<bool> stopped = false;
  std::thread closes([&] {
    pollfd wait{stranger.socket.fd(), POLLIN, 0};
    while (!stopped)
      if (::poll(&wait, 1, 10) > 0) accept_from(stranger);
  });
  const int port = std::stoi(stranger.port);
  PairRelay relay;
  for (const RelayUse use : {RelayUse::kAuto, RelayUse::kNever}) {
    const PortRange own = free_ports(1);
    const std::vector<std::string> ends = outcomes(
        2,
        [&](int64_t rank) {
          GlooOptions options;
          options.reach.relay = &relay;
          options.reach.use = use;
          // Without the relay worker 0 waits until its time is over; worker 1 does not need it to learn more.
          const bool waits = use == RelayUse::kNever && rank == 0;
          options.connect_timeout = waits ? milliseconds(500) : milliseconds(std::chrono::minutes(2));
          if (rank == 0)
            options.reach.ports = own,
            options.reach.advertised = AdvertisedHost{"127.0.0.1", PortRange{port, port}};
          return options;
        },
        work_some);
    if (use == RelayUse::kAuto) CHECK(ends == std::vector<std::string>{"works", "works"});
    if (use == RelayUse::kNever)
      CHECK_MESSAGE(ends[1].find("worker 1: lost worker 0: ") == 0, ends[1]);  // the control
    CHECK(relay.pairs == std::set<std::pair<int64_t, int64_t>>{{0, 1}});
  }
  stopped = true;
  closes.join();
}

TEST_CASE("a worker that needs a relay is an error where there is none") {
  const std::vector<std::string> errors = outcomes(2, [](int64_t rank) {
    GlooOptions options;
    if (rank == 0) options.reach.use = RelayUse::kAlways;
    options.connect_timeout = milliseconds(500);
    return options;
  });
  CHECK(errors[1] == "worker 1: worker 0 is reached through a relay only, and this group has none");
}

}  // namespace
}  // namespace ostro::dist
