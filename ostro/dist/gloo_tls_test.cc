// Groups whose connections are encrypted, and those who try to get between.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "ostro/dist/gloo_play_for_test.h"
#include "ostro/dist/handshake.h"
#include "ostro/dist/peer_sockets.h"

namespace ostro::dist {
namespace {

using std::chrono::milliseconds;

GlooOptions with_tls(const std::string& secret = "secret") {
  GlooOptions options;
  options.secret = secret;
  options.tls = true;
  options.connect_timeout = std::chrono::minutes(2);
  return options;
}

TEST_CASE("threads connected by Gloo with TLS as a group") {
  // Those whose messages fill buffers, overtake one another or are cut off.
  const auto run = [](const ir::Mesh& mesh, const Work& work) {
    return run_gloo_workers(mesh, work, with_tls());
  };
  for (const auto check : {check_large, check_paces, check_tickets, check_failure}) check(run);
}

TEST_CASE("with TLS, too, who leaves has said all, and is named") {
  std::vector<std::string> errors(3);
  play(
      line(3),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        if (!group.ok()) return;
        Status moved = swap_checked(**group, "x", [](int64_t, int64_t) { return 300'000; }, 0);
        if (rank != 2 && moved.ok()) {
          const auto result = all(**group, "x", 1);
          moved = result.ok() ? Status() : Status(result.error());
        }
        errors[static_cast<size_t>(rank)] = text_of(moved);
      },
      [](int64_t) { return with_tls(); });
  CHECK(errors[2].empty());
  CHECK_MESSAGE((errors[0] + errors[1]).find("lost worker 2: it left the group") != std::string::npos,
                (errors[0] + "; " + errors[1]));
}

TEST_CASE("with TLS, too, a peer that stands still is noticed by its bytes") {
  std::promise<void> over;
  std::string error;
  play(
      line(2),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        if (rank == 1) return over.get_future().wait();
        const auto result = group.ok() ? all(**group, "x", 1) : group.error();
        error = result.ok() ? "no error" : result.error().message();
        over.set_value();
      },
      [&](int64_t rank) {
        GlooOptions options = with_tls();
        if (rank == 0) options.exchange_limit = [] { return std::optional(milliseconds(100)); };
        return options;
      });
  CHECK(error == "worker 0: worker 1 sends and takes nothing: no byte has moved for 0.1 s");
}

TEST_CASE("a worker with another secret has no certificate of the job") {
  std::vector<std::string> errors(2);
  play(
      line(2),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        errors[static_cast<size_t>(rank)] = group.ok() ? "connected" : group.error().message();
        // As after any other cut, the worker may connect in another epoch.
        if (!group.ok()) CHECK(group.error().code() == ErrorCode::kIo);
      },
      [](int64_t rank) {
        GlooOptions options = with_tls(rank == 1 ? "guess" : "right");
        if (rank == 0) options.connect_timeout = milliseconds(5000);  // worker 1 comes within it
        return options;
      });
  CHECK_MESSAGE(
      errors[1].find("worker 1: lost worker 0: TLS: the other side's certificate is not of this job") == 0,
      errors[1]);
  CHECK_MESSAGE(
      errors[0].find("worker 0: no connection with worker 1 within 5000 ms; one was refused: TLS: ") == 0,
      errors[0]);
  CHECK_MESSAGE(errors[0].ends_with(" (from 127.0.0.1)"), errors[0]);
}

TEST_CASE("a worker with TLS and one without do not connect, and a group without a secret has no TLS") {
  for (const int64_t without : {int64_t{0}, int64_t{1}}) {
    // Worker 0 waits for so long. What it says of a worker without TLS it has to hear within it.
    const milliseconds limit(without == 1 ? 5000 : 500);
    const std::vector<std::string> errors = outcomes(2, [&](int64_t rank) {
      GlooOptions options = with_tls();
      options.tls = rank != without;
      if (rank == 0) options.connect_timeout = limit;
      return options;
    });
    const std::string late =
        "worker 0: no connection with worker 1 within " + std::to_string(limit.count()) + " ms";
    CHECK_MESSAGE(errors[0].find(late) == 0, errors[0]);
    CHECK_MESSAGE(errors[1].find("worker 1: lost worker 0: ") == 0, errors[1]);
    if (without == 1) CHECK(errors[0].find("this one has trainer.tls: job") != std::string::npos);
  }
  MemoryKeyValue store;
  const auto none = connect_gloo(line(1), 0, store, "none/", with_tls(""));
  REQUIRE(!none.ok());
  CHECK(none.error().message().find("OSTRO_JOB_SECRET") != std::string::npos);
}

// Waits for something to happen on connections, and goes on with their handshakes, until all have ended.
std::vector<Status> finish(std::vector<Handshake*> talks, const std::function<void()>& between) {
  std::vector<Status> ends(talks.size());
  std::vector<bool> over(talks.size());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (std::find(over.begin(), over.end(), false) != over.end()) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    for (size_t i = 0; i < talks.size(); ++i) {
      if (over[i]) continue;
      ends[i] = talks[i]->turn();
      over[i] = !ends[i].ok() || talks[i]->done();
    }
    between();
  }
  return ends;
}

std::pair<Socket, Socket> tcp_pair() {
  const Listener listener = listen_at("127.0.0.1", 4).value();
  Socket from = begin_connect(listener.host, listener.port).value().socket;
  pollfd there{listener.socket.fd(), POLLIN, 0};
  REQUIRE(::poll(&there, 1, 300'000) == 1);
  return {std::move(from), accept_from(listener)};
}

TEST_CASE("a proof that is passed on through another TLS connection is worth nothing") {
  const auto certificates = tls::Certificates::of_job("secret").value();
  const HandshakeNames zero{"secret", "g/", 0, 2, certificates}, one{"secret", "g/", 1, 2, certificates};
  for (const bool between : {false, true}) {
    auto [from, to] = tcp_pair();
    if (!between) {  // the control: the same two without anyone between them
      Handshake connects = Handshake::to(0, std::move(from), one);
      Handshake accepts = Handshake::from_anybody(std::move(to), zero);
      for (const Status& end : finish({&connects, &accepts}, [] {})) CHECK_MESSAGE(end.ok(), text_of(end));
      continue;
    }
    // One in the middle, with a certificate of the job (a stolen one) but without its secret.
    auto [middle_from, last] = tcp_pair();
    Handshake connects = Handshake::to(0, std::move(from), one);
    Handshake accepts = Handshake::from_anybody(std::move(last), zero);
    tls::Session near(*certificates, to.fd(), tls::Side::kAccepts);
    tls::Session far(*certificates, middle_from.fd(), tls::Side::kConnects);
    const auto pass_on = [](tls::Session& a, tls::Session& b) {
      std::array<char, 1000> bytes{};
      const auto got = a.read(bytes);
      if (got.ok() && got->bytes > 0) CHECK(b.write({bytes.data(), got->bytes}).value() == got->bytes);
    };
    const auto ends = finish({&connects, &accepts}, [&] {
      for (tls::Session* side : {&near, &far})
        if (!side->established()) CHECK(side->handshake().ok());
      if (!near.established() || !far.established()) return;
      pass_on(near, far);
      pass_on(far, near);
    });
    for (const Status& end : ends)
      CHECK_MESSAGE(text_of(end).find("did not prove to worker") != std::string::npos, text_of(end));
  }
}

}  // namespace
}  // namespace ostro::dist
