// Jobs whose connections are encrypted: who joins, and who is kept out.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <random>

#include "ostro/base/test_size.h"
#include "ostro/cluster/job_for_test.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {
namespace {

// A job with TLS; `joined()` is a member of it.
struct SecureJob : Job {
  explicit SecureJob(int64_t workers) : Job(workers) {
    coordinator.reset();
    options.tls = true;
    start();
  }
  Result<std::unique_ptr<Member>> try_join(bool tls, const std::string& secret = "s3cret") const {
    return Member::join("127.0.0.1", coordinator->port(), secret, hello(), kSoon, tls);
  }
  std::unique_ptr<Member> joined() const {
    auto member = try_join(true);
    REQUIRE_MESSAGE(member.ok(), (member.ok() ? "" : member.error().message()));
    return std::move(*member);
  }
};

std::string refusal_of(const Result<std::unique_ptr<Member>>& member) {
  REQUIRE(!member.ok());
  CHECK(member.error().code() == ErrorCode::kInvalidArgument);
  return member.error().message();
}

// A member in the first epoch of a job whose coordinator has ended; another may start at its port.
std::unique_ptr<Member> left_in_epoch(SecureJob& job) {
  auto member = job.joined();
  CHECK(next_epoch(*member, 0).number == 1);
  member->began(1);
  job.options.port = job.coordinator->port();
  job.coordinator.reset();
  return member;
}

Socket connect_to_job(const Job& job) {
  auto socket = connect_to("127.0.0.1", job.coordinator->port(), Clock::now() + kSoon);
  REQUIRE(socket.ok());
  return std::move(*socket);
}

TEST_CASE("a job with TLS: members join, exchange values, and one that is lost is missed") {
  SecureJob job(2);
  auto one = job.joined();
  job.wait_for_members(1);
  auto other = job.joined();
  CHECK(next_epoch(*one, 0).number == 1);
  CHECK(next_epoch(*other, 0).number == 1);
  // More than one record, and more than is read in one turn.
  const std::string value(700'000, 'v');
  CHECK(one->store(1).set("key", value).ok());
  CHECK(*other->store(1).get("key", kSoon) == value);
  End end(*other, 1);
  one.reset();
  CHECK(end.reason().find("here") != std::string::npos);
}

TEST_CASE("with TLS, too, a member comes back to a restarted coordinator") {
  SecureJob job(1);
  const auto member = left_in_epoch(job);
  job.start();
  job.wait_for_members(1);
  CHECK(member->store(0).set("key", "value").ok());
  CHECK(*member->store(0).get("key", kSoon) == "value");
}

// One that answers at the coordinator's address and knows no secret.
struct Impostor {
  explicit Impostor(int port) : listener(listen_at("127.0.0.1", {port, port}, true).value()) {}
  Channel accepted() const {
    pollfd there{listener.fd(), POLLIN, 0};
    REQUIRE(poll(&there, 1, 300'000) == 1);
    return Channel(accept_from(listener).value());
  }
  Socket listener;
};

TEST_CASE("with TLS a member gives no coordinator up because of what is said without it") {
  SecureJob job(1);
  const auto member = left_in_epoch(job);
  {
    const Impostor impostor(job.options.port);
    for (const Kind kind : {Kind::kRefused, Kind::kChallenge, Kind::kSecured}) {
      Channel channel = impostor.accepted();
      channel.push(Message(kind).text("the secret is wrong").bytes());
      REQUIRE(channel.flush().ok());
      // TLS, too, but with a certificate of another job.
      const auto foreign = tls::Certificates::of_job("another").value();
      if (kind == Kind::kSecured) channel.secure(*foreign, tls::Side::kAccepts);
      pollfd there{channel.fd(), POLLIN, 0};
      Status status;
      while (status.ok()) {
        REQUIRE(poll(&there, 1, 300'000) == 1);
        status = channel.fill(1024);
        if (status.ok()) status = channel.flush();
      }
    }
  }
  job.start();
  job.wait_for_members(1);
  CHECK(member->store(0).set("key", "value").ok());
}

TEST_CASE("what comes in the clear behind the offer of TLS is not taken for a message in TLS") {
  const Impostor impostor(0);
  Result<std::unique_ptr<Member>> joined = busy("");
  std::thread worker([&] {
    joined =
        Member::join("127.0.0.1", port_of(impostor.listener), "s3cret", {"job", {}, "here", 1}, kSoon, true);
  });
  Channel channel = impostor.accepted();
  channel.push(Message(Kind::kSecured).bytes());
  channel.push(Message(Kind::kChallenge).text(std::string(32, 'n')).bytes());
  REQUIRE(channel.flush().ok());
  worker.join();
  REQUIRE(!joined.ok());
  CHECK(joined.error().code() == ErrorCode::kCorrupt);
  CHECK(joined.error().message().find("between its offer of TLS and TLS") != std::string::npos);
  char byte = 0;
  CHECK(recv(channel.fd(), &byte, 1, MSG_DONTWAIT) == 0);  // it has said nothing
}

TEST_CASE("a worker without TLS, and a coordinator without it, are refused by name") {
  SecureJob secure(1);
  const std::string without = refusal_of(secure.try_join(false));
  CHECK_MESSAGE(without.find("takes only connections with TLS") != std::string::npos, without);
  CHECK(without.find("trainer.tls: job") != std::string::npos);
  Job plain(1);
  const std::string with =
      refusal_of(Member::join("127.0.0.1", plain.coordinator->port(), "s3cret", plain.hello(), kSoon, true));
  CHECK_MESSAGE(with.find("it has no TLS") != std::string::npos, with);
  CHECK(with.find("trainer.tls: job") != std::string::npos);
  CHECK(secure.coordinator->members() == 0);
  CHECK(plain.coordinator->members() == 0);
}

TEST_CASE("with TLS a wrong secret is a certificate of another job") {
  SecureJob job(1);
  const std::string wrong = refusal_of(job.try_join(true, "another"));
  CHECK_MESSAGE(wrong.find("certificate is not of this job") != std::string::npos, wrong);
  auto member = job.joined();
  CHECK(next_epoch(*member, 0).number == 1);
}

TEST_CASE("TLS without a secret is an error on both sides") {
  CoordinatorOptions options;
  options.tls = true;
  const auto none = Coordinator::start(options);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kInvalidArgument);
  CHECK(none.error().message().find("OSTRO_JOB_SECRET") != std::string::npos);
  CHECK(refusal_of(Member::join("127.0.0.1", 1, "", {}, kNever, true)).find("OSTRO_JOB_SECRET") !=
        std::string::npos);
}

// One that pretends to be the coordinator, and skips TLS: the worker says nothing to it.
TEST_CASE("a worker with TLS says nothing to who offers none") {
  const Socket listener = listen_at("127.0.0.1", {}, true).value();
  Result<std::unique_ptr<Member>> joined = busy("");
  std::thread worker([&] {
    joined = Member::join("127.0.0.1", port_of(listener), "s3cret", {"job", {}, "here", 1}, kSoon, true);
  });
  pollfd there{listener.fd(), POLLIN, 0};
  REQUIRE(poll(&there, 1, 300'000) == 1);
  Channel channel(accept_from(listener).value());
  channel.push(Message(Kind::kChallenge).text(std::string(32, 'n')).bytes());
  REQUIRE(channel.flush().ok());
  worker.join();
  CHECK(refusal_of(joined).find("it has no TLS") != std::string::npos);
  char byte = 0;
  CHECK(recv(channel.fd(), &byte, 1, MSG_DONTWAIT) == 0);  // the end of the connection, and no byte before
}

TEST_CASE("garbage before, instead of and after the handshake harms nobody") {
  SecureJob job(2);
  auto one = job.joined();
  job.wait_for_members(1);
  auto other = job.joined();
  next_epoch(*one, 0);
  next_epoch(*other, 0);
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  const auto certificates = tls::Certificates::of_job("s3cret").value();
  for (int i = 0; i < 100; ++i) {
    const Socket socket = connect_to_job(job);
    std::string bytes(1 + rng() % 2'000, '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    if (i % 3 == 1) bytes.replace(0, 3, "\x16\x03\x01");  // a record of a handshake
    if (i % 3 == 2) bytes = Message(Kind::kProof).text(bytes).text(bytes).bytes();
    (void)send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // With a certificate of the job, as one that was stolen, but without a proof.
  for (int i = 0; i < 20; ++i) {
    Channel channel(connect_to_job(job));
    pollfd there{channel.fd(), POLLIN, 0};
    REQUIRE(poll(&there, 1, 300'000) == 1);
    REQUIRE(channel.fill(kMostBytesOfStranger).ok());
    REQUIRE(channel.next(kMostBytesOfStranger).value().has_value());  // kSecured
    channel.secure(*certificates, tls::Side::kConnects);
    std::string bytes(1 + rng() % 500, '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    channel.push(bytes);
    Status status;
    while (status.ok() && channel.binding().empty()) {
      status = channel.flush();
      if (status.ok() && channel.binding().empty() && poll(&there, 1, 300'000) == 1)
        status = channel.fill(1024);
    }
    CHECK(status.ok());
    (void)channel.flush();
  }
  auto late = job.joined();  // connections are taken in their order, so all of that has been read by now
  CHECK(job.coordinator->epoch() == 1);
  job.wait_for_members(3);
  CHECK(one->store(1).set("key", "value").ok());
  CHECK(*other->store(1).get("key", kSoon) == "value");
}

}  // namespace
}  // namespace ostro::cluster
