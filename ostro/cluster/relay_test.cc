// Workers that connect through the coordinator: what they say arrives, ends do too, strangers get nowhere,
// and the coordinator does not wait for them.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <future>
#include <random>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/cluster/job_for_test.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/relay/relay_hub.h"
#include "ostro/cluster/relay_caller.h"
#include "ostro/cluster/relay_request.h"
#include "ostro/cluster/wire/secret.h"
#include "ostro/dist/gloo_group.h"

namespace ostro::cluster {
namespace {

struct RelayJob : Job {
  explicit RelayJob(int64_t workers, bool tls = false) : Job(workers) {
    if (!tls) return;
    coordinator.reset();
    options.tls = true;
    start();
  }
  RelayCaller caller(const std::string& secret = "s3cret") const {
    return RelayCaller("127.0.0.1", coordinator->port(), secret);
  }
  std::unique_ptr<dist::RelayCall> call(const std::string& group, int64_t own, int64_t peer) const {
    return caller().call(group, own, peer).value();
  }
};

// Goes on with a call until it is joined, or fails.
Status joined(dist::RelayCall& call) {
  const auto until = Clock::now() + kSoon;
  while (true) {
    const auto done = call.turn();
    if (!done.ok()) return done.error();
    if (*done) return {};
    REQUIRE(Clock::now() < until);
    pollfd wait{call.fd(), static_cast<short>(call.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0};
    poll(&wait, 1, 100);
  }
}

// Two ends of a relayed connection.
std::pair<dist::Socket, dist::Socket> pair_of(const RelayJob& job, const std::string& group) {
  auto one = job.call(group, 0, 1), other = job.call(group, 1, 0);
  auto first = std::async(std::launch::async, [&] { return joined(*one); });
  const Status second = joined(*other);
  REQUIRE_MESSAGE(second.ok(), (second.ok() ? "" : second.error().message()));
  REQUIRE(first.get().ok());
  return {one->take(), other->take()};
}

void send_whole(const dist::Socket& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put > 0) bytes.remove_prefix(static_cast<size_t>(put));
    pollfd wait{socket.fd(), POLLOUT, 0};
    REQUIRE((put > 0 || errno == EAGAIN));
    if (put <= 0) REQUIRE(poll(&wait, 1, 300'000) == 1);
  }
}

// What comes until there are `most` bytes, or the connection ends.
std::string receive_all(const dist::Socket& socket, size_t most) {
  std::string out(most, '\0');
  size_t got = 0;
  while (got < most) {
    pollfd wait{socket.fd(), POLLIN, 0};
    REQUIRE(poll(&wait, 1, 300'000) == 1);
    const ssize_t n = ::recv(socket.fd(), out.data() + got, most - got, 0);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  out.resize(got);
  return out;
}

TEST_CASE("bytes arrive both ways, as they are, and ends after them") {
  for (const bool tls : {false, true}) {
    RelayJob job(1, tls);
    auto [one, other] = pair_of(job, "g/");
    std::mt19937_64 rng(test_seed());
    std::string text(3'000'000, '\0');  // more than all buffers
    for (char& c : text) c = static_cast<char>(rng());
    auto there = std::async(std::launch::async, [&, a = &one] { send_whole(*a, text); });
    auto back = std::async(std::launch::async, [&, b = &other] { send_whole(*b, text); });
    auto got = std::async(std::launch::async, [&, a = &one] { return receive_all(*a, text.size()); });
    CHECK(receive_all(other, text.size()) == text);
    CHECK(got.get() == text);
    there.get(), back.get();
    CHECK(job.coordinator->watched().relayed_pairs == 1);
    const auto until = Clock::now() + kSoon;  // they are counted when they are delivered
    while (job.coordinator->watched().relayed_bytes < 2 * static_cast<int64_t>(text.size()))
      REQUIRE(Clock::now() < until);
    // One says all, and hears the other.
    ::shutdown(one.fd(), SHUT_WR);
    CHECK(receive_all(other, 10).empty());
    send_whole(other, "last");
    other.close();
    CHECK(receive_all(one, 10) == "last");
  }
}

TEST_CASE("pairs and groups are kept apart") {
  RelayJob job(1);
  auto [a, b] = pair_of(job, "a/");
  auto [c, d] = pair_of(job, "b/");
  send_whole(a, "to b"), send_whole(c, "to d");
  CHECK(receive_all(b, 4) == "to b");
  CHECK(receive_all(d, 4) == "to d");
}

// The end of a pair of sockets that a worker has; the other one is at the hub.
dist::Socket at_hub(RelayHub& hub, const RelayEnd& end) {
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
  hub.add(end, Socket(fds[0]));
  return dist::Socket(fds[1]);
}

TEST_CASE("one that calls again is the one that is joined; who speaks before that is dropped") {
  RelayHub hub("J", milliseconds(60'000), {});
  const dist::Socket stale = at_hub(hub, {"g", 0, 1});
  const dist::Socket fresh = at_hub(hub, {"g", 0, 1});
  CHECK(receive_all(stale, 1).empty());
  const dist::Socket early = at_hub(hub, {"g", 2, 1});
  send_whole(early, "too early");
  CHECK(receive_all(early, 1).empty());
  const dist::Socket other = at_hub(hub, {"g", 1, 0});
  CHECK(receive_all(fresh, 1) == "J");  // before that, it may not speak
  send_whole(fresh, "hello");
  CHECK(receive_all(other, 6) == "Jhello");
}

TEST_CASE("an end whose other end never comes is closed, and gives its place back") {
  RelayHub hub("J", milliseconds(60'000), {.ends = 2, .waits = milliseconds(20)});
  CHECK(hub.has_room());
  {
    RelayHub patient("J", milliseconds(60'000), {.ends = 2});
    const dist::Socket one = at_hub(patient, {"a", 0, 1}), two = at_hub(patient, {"b", 0, 1});
    CHECK(!patient.has_room());
  }
  const dist::Socket one = at_hub(hub, {"a", 0, 1}), two = at_hub(hub, {"b", 0, 1});
  CHECK(receive_all(one, 1).empty());
  CHECK(receive_all(two, 1).empty());
  const auto until = Clock::now() + std::chrono::minutes(5);
  while (!hub.has_room()) REQUIRE(Clock::now() < until);
}

TEST_CASE("a relay that is full refuses, says so, and leaves its pairs and members alone") {
  RelayJob job(1);
  job.coordinator.reset();
  job.options.relay_ends = 2;
  job.start();
  auto [one, other] = pair_of(job, "g/");
  auto more = job.call("h/", 0, 1);
  const Status refused = joined(*more);
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::kIo);
  CHECK_MESSAGE(
      refused.error().message().find("the relay has 2 connections, and takes no more") != std::string::npos,
      refused.error().message());
  send_whole(one, "hello");
  CHECK(receive_all(other, 5) == "hello");
  const auto member = job.join();
  CHECK(member->coordinator_address() == "127.0.0.1");
  // Its name has no address here; the member's connection leads to it.
  one.close(), other.close();
  RelayCaller caller("nowhere.invalid", job.coordinator->port(), "s3cret");
  caller.follow([&] { return member->coordinator_address(); });
  const auto until = Clock::now() + std::chrono::minutes(5);
  while (job.coordinator->watched().relayed_pairs > 0) REQUIRE(Clock::now() < until);
  auto first = caller.call("g/", 0, 1).value(), second = caller.call("g/", 1, 0).value();
  auto there = std::async(std::launch::async, [&] { return joined(*first); });
  CHECK(joined(*second).ok());
  CHECK(there.get().ok());
}

// Its message would not be a worker's whatever the secret is.
TEST_CASE("a request for the relay that is none is not called one with another secret") {
  RelayRequest request{std::string(32, 'g'), 1, 1, std::string(32, 'n')};
  const std::string nonce(32, 'c');
  const auto read = [&] {
    const std::string message = relay_message(request, "s3cret", nonce);
    MessageReader reader(message);
    (void)reader.kind();
    return read_relay(reader, "s3cret", nonce);
  };
  CHECK(read().error().code() == ErrorCode::kCorrupt);  // with itself
  request.peer = 2;
  CHECK(read().ok());
  const std::string other = relay_message(request, "another", nonce);
  MessageReader reader(other);
  CHECK(read_relay(reader, "s3cret", nonce).error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("one that takes nothing keeps neither the coordinator nor another pair") {
  RelayJob job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  auto [full, deaf] = pair_of(job, "full/");
  const std::string piece(1 << 16, 'x');
  size_t sent = 0;
  for (int idle = 0; idle < 20;) {  // until nothing is taken for a while: all buffers are full
    const ssize_t put = ::send(full.fd(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    pollfd wait{full.fd(), POLLOUT, 0};
    if (put > 0) sent += static_cast<size_t>(put), idle = 0;
    if (put <= 0 && poll(&wait, 1, 10) == 0) ++idle;
  }
  auto [one, other] = pair_of(job, "free/");
  send_whole(one, "hello");
  CHECK(receive_all(other, 5) == "hello");
  CHECK(members[0]->store(1).set("key", "value").ok());
  CHECK(*members[1]->store(1).get("key", kSoon) == "value");
  full.close();
  CHECK(receive_all(deaf, sent + 1).size() == sent);
}

TEST_CASE("strangers at the relay get nowhere") {
  for (const bool tls : {false, true}) {
    RelayJob job(1, tls);
    auto wrong = job.caller("another").call("g/", 0, 1).value();
    const Status refused = joined(*wrong);
    REQUIRE(!refused.ok());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(refused.error().message().find("the secret is wrong") != std::string::npos,
                  refused.error().message());
    // A request that was recorded on another connection, and garbage.
    std::mt19937_64 rng(test_seed());
    RelayRequest request{std::string(32, 'g'), 0, 1, std::string(32, 'n')};
    const std::string recorded = relay_message(request, "s3cret", std::string(32, 'c'));
    for (int i = 0; i < 60; ++i) {
      Channel channel(connect_to("127.0.0.1", job.coordinator->port(), Clock::now() + kSoon).value());
      std::string bytes = recorded;
      if (i % 2 == 1) bytes[1 + rng() % (bytes.size() - 1)] ^= static_cast<char>(1 + rng() % 255);
      if (i % 3 == 2) bytes.resize(rng() % bytes.size() + 1);
      channel.push(bytes);
      (void)channel.flush();
    }
    auto [one, other] = pair_of(job, "g/");
    send_whole(one, "hello");
    CHECK(receive_all(other, 5) == "hello");
    CHECK(job.coordinator->watched().relayed_pairs == 1);
  }
}

TEST_CASE("a call that meets no coordinator, or loses it, is made again") {
  RelayJob job(1);
  job.options.port = job.coordinator->port();
  auto lost = job.call("g/", 0, 1);
  REQUIRE(lost->turn().ok());
  job.coordinator.reset();
  RelayCaller caller("127.0.0.1", job.options.port, "s3cret");
  auto early = caller.call("g/", 1, 0).value();
  job.start();
  auto first = std::async(std::launch::async, [&] { return joined(*early); });
  const Status second = joined(*lost);
  CHECK_MESSAGE(second.ok(), (second.ok() ? "" : second.error().message()));
  const Status other = first.get();
  CHECK_MESSAGE(other.ok(), (other.ok() ? "" : other.error().message()));
  // Where none comes, it ends.
  job.coordinator.reset();
  auto never = caller.call("g/", 0, 1).value();
  const Status ended = joined(*never);
  REQUIRE(!ended.ok());
  CHECK(ended.error().code() == ErrorCode::kIo);
  CHECK(ended.error().message().find("the coordinator at 127.0.0.1:") == 0);
}

// With TLS a connection in the clear is good for the relay only.
TEST_CASE("who knows the secret and leaves TLS out does not become a member") {
  RelayJob job(1, true);
  Channel channel(connect_to("127.0.0.1", job.coordinator->port(), Clock::now() + kSoon).value());
  pollfd wait{channel.fd(), POLLIN, 0};
  REQUIRE(poll(&wait, 1, 300'000) == 1);
  REQUIRE(channel.fill(kMostBytesOfStranger).ok());
  const auto secured = channel.next(kMostBytesOfStranger).value();
  REQUIRE(secured);
  MessageReader reader(*secured);
  REQUIRE(reader.kind() == Kind::kSecured);
  const std::string nonce(reader.text()), own(32, 'n');
  channel.push(Message(Kind::kProof).text(own).text(proof("s3cret", "member", nonce, own, "")).bytes());
  REQUIRE(channel.flush().ok());
  Status open;
  while (open.ok()) {
    REQUIRE(poll(&wait, 1, 300'000) == 1);
    open = channel.fill(kMostBytes);
  }
  CHECK(!channel.next(kMostBytes).value().has_value());  // no welcome
}

// The whole way: members, their stores, and a group whose workers reach the coordinator only.
TEST_CASE("a group through the coordinator, and its next one after a worker was lost") {
  for (const bool tls : {false, true}) {
    RelayJob job(2, tls);
    RelayCaller caller = job.caller();
    const auto member_of_job = [&] {
      auto member = Member::join("127.0.0.1", job.coordinator->port(), "s3cret", job.hello(), kSoon, tls);
      REQUIRE(member.ok());
      return std::move(*member);
    };
    const auto connected = [&](Member& member, const Epoch& epoch) {
      dist::GlooOptions options;
      options.reach.relay = &caller;
      options.reach.use = dist::RelayUse::kAlways;
      options.secret = "s3cret";
      options.tls = tls;
      options.connect_timeout = std::chrono::minutes(2);
      return dist::connect_gloo({{{"x", epoch.size}}}, epoch.rank, member.store(epoch.number),
                                "gloo/" + std::to_string(epoch.number), options);
    };
    const auto swap = [](dist::Group& group) -> Status {
      std::vector<std::byte> send(500'000, std::byte(1 + group.rank())), receive(send.size());
      const std::array<int64_t, 1> peer{1 - group.rank()};
      const std::array<std::span<const std::byte>, 1> out{send};
      const std::array<std::span<std::byte>, 1> in{receive};
      RETURN_IF_ERROR(group.exchange(peer, out, in));
      return receive.back() == std::byte(2 - group.rank()) ? Status() : Status(corrupt("other bytes"));
    };
    auto stays = member_of_job();
    job.wait_for_members(1);
    auto goes = member_of_job();
    const Epoch first = next_epoch(*stays, 0), second = next_epoch(*goes, 0);
    auto other = std::async(std::launch::async, [&] { return connected(*goes, second); });
    auto group = connected(*stays, first);
    auto lost = other.get();
    REQUIRE_MESSAGE(group.ok(), (group.ok() ? "" : group.error().message()));
    REQUIRE_MESSAGE(lost.ok(), (lost.ok() ? "" : lost.error().message()));
    auto swapped = std::async(std::launch::async, [&] { return swap(**lost); });
    CHECK(swap(**group).ok());
    CHECK(swapped.get().ok());
    // One ends as if it were killed: its connections close, and the other one sees it through the relay.
    (*lost)->abort("killed");
    CHECK(!swap(**lost).ok());
    goes.reset();
    CHECK(!swap(**group).ok());
    lost->reset(), group->reset();
    auto next = member_of_job();
    stays->ready();
    next->ready();
    const Epoch third = next_epoch(*stays, 1), fourth = next_epoch(*next, 1);
    auto again = std::async(std::launch::async, [&] {
      auto made = connected(*next, fourth);
      return made.ok() ? swap(**made) : Status(made.error());
    });
    auto last = connected(*stays, third);
    REQUIRE_MESSAGE(last.ok(), (last.ok() ? "" : last.error().message()));
    CHECK(swap(**last).ok());
    CHECK(again.get().ok());
  }
}

// Connections through the relay end with the coordinator, so a fault may be found while there is none.
TEST_CASE("a fault while the coordinator was gone ends the epoch that it restores") {
  const auto folder =
      std::filesystem::temp_directory_path() / ("ostro_relay_test_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  Job job(2);
  job.options.journal = (folder / "journal").string();
  job.coordinator.reset();
  job.start();
  auto members = job.join_in_order(2);
  for (const auto& member : members) {
    next_epoch(*member, 0);
    member->began(1);
  }
  job.options.port = job.coordinator->port();
  job.coordinator.reset();
  members[1]->fault(1, "its connection through the relay broke");
  job.start();
  End end(*members[0], 1);
  // It comes back before the fault is told, or after it.
  const std::string reason = end.reason();
  CHECK_MESSAGE((reason.find("its connection through the relay broke") != std::string::npos ||
                 reason.find("the others went on without this worker") != std::string::npos),
                reason);
  job.coordinator.reset();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ostro::cluster
