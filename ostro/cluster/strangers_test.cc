// Those who do not belong: other secrets, other programs, garbage.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "ostro/base/test_size.h"
#include "ostro/cluster/job_for_test.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {
namespace {

Socket connect(const Job& job) {
  auto socket = connect_to("127.0.0.1", job.coordinator->port(), Clock::now() + kSoon);
  REQUIRE(socket.ok());
  return std::move(*socket);
}

// That two members still have their epoch, and each other.
void check_unharmed(const Job& job, std::vector<std::unique_ptr<Member>>& members) {
  CHECK(job.coordinator->epoch() == 1);
  job.wait_for_members(2);
  CHECK(members[0]->store(1).set("key", "value").ok());
  CHECK(*members[1]->store(1).get("key", kSoon) == "value");
}

TEST_CASE("a wrong secret keeps a worker out") {
  Job job(1);
  const auto wrong = Member::join("127.0.0.1", job.coordinator->port(), "secret", job.hello(), kSoon);
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().code() == ErrorCode::kInvalidArgument);
  CHECK(wrong.error().message().find("the secret is wrong") != std::string::npos);
  CHECK(job.coordinator->members() == 0);
  auto member = job.join();
  CHECK(next_epoch(*member, 0).number == 1);
}

TEST_CASE("a coordinator that can open no more files says so, and takes workers when it can again") {
  std::mutex mutex;
  std::string log;
  Job job(1);
  set_log_sink([&](LogLevel, std::string_view line) {
    const std::scoped_lock lock(mutex);
    log += line;
  });
  const auto said = [&] {
    const std::scoped_lock lock(mutex);
    return log.find("no worker can connect") != std::string::npos &&
           log.find("ulimit -n") != std::string::npos;
  };
  const Socket caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest =
      ::dup(caller.fd());  // the lowest number that is free: no file may have it or a higher one
  REQUIRE(lowest > 0);
  REQUIRE(::close(lowest) == 0);
  const rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(job.coordinator->port()));
  const int connected = ::connect(caller.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  const auto until = Clock::now() + kSoon;
  while (connected == 0 && !said() && Clock::now() < until) std::this_thread::yield();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connected == 0);
  CHECK(said());
  auto member = job.join();
  CHECK(next_epoch(*member, 0).number == 1);
  set_log_sink([](LogLevel, std::string_view) {});
}

TEST_CASE("a hello that differs is refused with both values and both hosts; the others go on") {
  Job job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[1], 0);
  const auto refusal = [&](Hello hello) {
    hello.host = "there";
    hello.pid = 77;
    auto member = job.join(hello);
    const Result<Epoch> epoch = member->wait_epoch(0, kSoon);
    REQUIRE(!epoch.ok());
    CHECK(epoch.error().code() == ErrorCode::kInvalidArgument);
    return epoch.error().message();
  };
  const std::string here = "here (pid " + std::to_string(getpid()) + "): it must be equal in all workers";
  Hello hello = job.hello();
  hello.equal[1].second = "c2";
  CHECK(refusal(hello) == "'config' is 'c2' on there (pid 77), but 'c1' on " + here);
  hello = job.hello();
  hello.job = "another";
  CHECK(refusal(hello) == "'job' is 'another' on there (pid 77), but 'job' on " + here);
  hello = job.hello();
  hello.equal.pop_back();
  CHECK(refusal(hello) == "'config' is not given on there (pid 77), but 'c1' on " + here);
  hello = job.hello();
  hello.equal.emplace_back("world", "2");
  CHECK(refusal(hello) == "'world' is '2' on there (pid 77), but not given on " + here);
  check_unharmed(job, members);
}

TEST_CASE("with a hello that is expected, the first worker can be refused, too") {
  Job job(1);
  CoordinatorOptions options = job.options;
  options.port = 0;
  options.expected = job.hello();
  options.expected->host = "coordinator";
  const auto coordinator = Coordinator::start(options).value();
  Hello hello = job.hello();
  hello.equal[0].second = "p2";
  const auto member = Member::join("127.0.0.1", coordinator->port(), options.secret, hello, kSoon).value();
  const Result<Epoch> epoch = member->wait_epoch(0, kSoon);
  REQUIRE(!epoch.ok());
  CHECK(epoch.error().message().find("'program' is 'p2' on here") != std::string::npos);
  CHECK(epoch.error().message().find("but 'p1' on coordinator") != std::string::npos);
}

TEST_CASE("a worker that says why it goes is lost for that reason") {
  Job job(1);
  std::mutex mutex;
  std::string why;
  CoordinatorOptions options = job.options;
  options.port = 0;
  options.observer = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    if (event.kind == Event::Kind::kLost) why = event.why;
  };
  const auto coordinator = Coordinator::start(options).value();
  auto member = Member::join("127.0.0.1", coordinator->port(), options.secret, job.hello(), kSoon).value();
  next_epoch(*member, 0);
  member->goes("its data differ");
  member.reset();
  const auto until = Clock::now() + kSoon;
  while (coordinator->members() > 0) {
    REQUIRE(Clock::now() < until);
    std::this_thread::yield();
  }
  const std::lock_guard lock(mutex);
  CHECK(why == "its data differ");
}

TEST_CASE("options that make no sense, and a port in use") {
  Job job(1);
  CoordinatorOptions options = job.options;
  options.port = job.coordinator->port();
  const auto used = Coordinator::start(options);
  REQUIRE(!used.ok());
  CHECK(used.error().code() == ErrorCode::kBusy);
  options = {};
  options.bind = "0.0.0.0";
  const auto open = Coordinator::start(options);
  REQUIRE(!open.ok());
  CHECK(open.error().message().find("without a secret") != std::string::npos);
  options = {};
  options.max_workers = 0;
  CHECK(Coordinator::start(options).error().code() == ErrorCode::kInvalidArgument);
  options = {};
  options.bind = "256.1.1.1";
  CHECK(Coordinator::start(options).error().code() == ErrorCode::kInvalidArgument);
  // A port that is taken and at which nothing listens: one that is free may be another process's at any time.
  const Socket taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(taken.fd(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
  const auto none = Member::join("127.0.0.1", port_of(taken), "", job.hello(), kNever);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kIo);
}

TEST_CASE("garbage of any length harms nobody") {
  Job job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[1], 0);
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  for (int i = 0; i < 200; ++i) {
    const Socket socket = connect(job);
    std::string bytes(rng() % (i % 10 == 0 ? 200'000 : 2'000), '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    // Half of them with a length that is allowed, a quarter of a kind that is too, so that more than the
    // length is read.
    if (i % 2 == 0 && bytes.size() > 5) {
      const size_t size = 1 + rng() % kMostBytesOfStranger;
      for (size_t b = 0; b < 4; ++b) bytes[b] = static_cast<char>(size >> (8 * b));
      if (i % 4 == 0) bytes[4] = static_cast<char>(1 + rng() % 14);
    }
    // It may close before all is sent.
    if (send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) continue;
  }
  job.join();  // connections are taken in their order, so all that garbage has been read by now
  check_unharmed(job, members);
}

TEST_CASE("connections that say nothing, or half a word, keep nobody out") {
  Job job(2);
  std::vector<Socket> silent;
  for (size_t i = 0; i < 100; ++i) {
    silent.push_back(connect(job));
    if (i % 2 == 0) REQUIRE(send(silent[i].fd(), "\x40\0\0\0\7", 1 + i % 5, MSG_NOSIGNAL) > 0);
  }
  auto members = job.join_in_order(2);
  next_epoch(*members[0], 0);
  next_epoch(*members[1], 0);
  check_unharmed(job, members);
}

TEST_CASE("slow: a connection that says nothing is closed after five seconds") {
  Job job(1);
  const auto start = Clock::now();
  Channel channel(connect(job));
  Status open;
  while (open.ok()) {
    pollfd wait{channel.fd(), POLLIN, 0};
    REQUIRE(poll(&wait, 1, 20'000) == 1);
    open = channel.fill(kMostBytes);
  }
  CHECK(Clock::now() - start > milliseconds(4'900));
}

// Who knows the secret, and has said hello; what it does then is up to the test.
Channel proven(const Job& job) {
  KnownAddresses known;
  auto joined = connect_and_prove("127.0.0.1", job.coordinator->port(), job.options.secret, nullptr,
                                  Clock::now() + kSoon, known);
  REQUIRE_MESSAGE(joined.ok(), (joined.ok() ? "" : joined.error().message()));
  joined->channel.push(hello_message(job.hello()));
  return std::move(joined->channel);
}

TEST_CASE("a worker that sends nonsense leaves the others in peace") {
  Job job(2);
  auto members = job.join_in_order(2);
  next_epoch(*members[1], 0);
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  for (int i = 0; i < 100; ++i) {
    Channel channel = proven(job);
    for (int n = 0; n < 5; ++n) {
      std::string bytes(1 + rng() % 100, '\0');
      for (char& c : bytes) c = static_cast<char>(rng() % 4 == 0 ? rng() : 0);
      bytes[0] = static_cast<char>(1 + rng() % 15);
      if (bytes.size() > 1) bytes[1] = 1;
      channel.push(bytes);
    }
    if (!channel.flush().ok()) continue;  // it may close before all is sent
  }
  job.join();
  check_unharmed(job, members);
}

TEST_CASE("a worker that does not read what it asked for is dropped") {
  Job job(1);
  Channel channel = proven(job);
  REQUIRE(channel.flush().ok());
  const auto until = Clock::now() + kSoon;
  while (job.coordinator->epoch() == 0) {
    REQUIRE(Clock::now() < until);
    std::this_thread::yield();
  }
  channel.push(Message(Kind::kSet).number(1).number(1).text("key").text(std::string(1'000'000, 'x')).bytes());
  for (int i = 2; i < 100; ++i) channel.push(Message(Kind::kGet).number(i).number(1).text("key").bytes());
  while (channel.wants_to_write() && channel.flush().ok()) REQUIRE(Clock::now() < until);
  job.wait_for_members(0);
  auto member = job.join();
  CHECK(next_epoch(*member, 0).number == 2);
}

TEST_CASE("a message of any bytes can be read") {
  std::mt19937_64 rng(test_seed());
  const std::string good = hello_message({"job", {{"a", "b"}, {"c", ""}}, "host", 3});
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good.substr(0, rng() % (good.size() + 1));
    for (size_t n = rng() % 3; n > 0 && !bytes.empty(); --n)
      bytes[rng() % bytes.size()] = static_cast<char>(rng());
    MessageReader reader(bytes);
    const std::optional<Hello> hello = read_hello(reader);
    if (bytes.size() < good.size()) CHECK(!hello);
  }
  MessageReader reader(good);
  const std::optional<Hello> hello = read_hello(reader);
  REQUIRE(hello);
  CHECK(hello->equal == std::vector<std::pair<std::string, std::string>>{{"a", "b"}, {"c", ""}});
  CHECK(hello->pid == 3);
}

TEST_CASE(
    "the workers of an epoch, their slices in runs, are read as they were written, and not from a message "
    "that is cut") {
  Epoch epoch;
  epoch.rates = {3, 6};
  epoch.hosts = {"a", "b", "c", "d", "e", "f"};
  epoch.slices = {"x", "x", "x", "y", "", ""};
  epoch.guessed = {false, false, true, true, false, false};
  Message message(Kind::kEpoch);
  write_workers(epoch, message);
  const std::string good = message.bytes();
  const auto read = [](const std::string& bytes, Epoch& to) {
    MessageReader reader(bytes);
    return read_workers(reader, to) && reader.done();
  };
  Epoch again;
  REQUIRE(read(good, again));
  CHECK(again.size == 6);
  CHECK(again.hosts == epoch.hosts);
  CHECK(again.slices == epoch.slices);
  CHECK(again.guessed == epoch.guessed);
  CHECK(again.rates.fastest == 6);
  for (size_t size = 1; size < good.size(); ++size) {
    Epoch cut;
    CHECK(!read(good.substr(0, size), cut));
  }
  std::mt19937_64 rng(test_seed());
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    bytes[1 + rng() % (bytes.size() - 1)] = static_cast<char>(rng());
    Epoch other;
    if (read(bytes, other)) CHECK(other.slices.size() == other.hosts.size());
  }
}

}  // namespace
}  // namespace ostro::cluster
