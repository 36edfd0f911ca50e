#include "ostro/dist/pump.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <random>
#include <thread>

#include "ostro/base/test_size.h"

namespace ostro::dist {
namespace {

constexpr int kEvent = 300'000;  // milliseconds, for what must happen

void wait_for(int fd, short what) {
  pollfd there{fd, what, 0};
  REQUIRE(::poll(&there, 1, kEvent) == 1);
}

std::shared_ptr<tls::Certificates> job() {
  static const auto made = tls::Certificates::of_job("secret").value();
  return made;
}

// Two ends of a connection by TCP, with a session on each whose handshake is over.
std::array<PeerSocket, 2> connected() {
  const Listener listener = listen_at("127.0.0.1", 4).value();
  std::array<PeerSocket, 2> out;
  out[0].socket = begin_connect(listener.host, listener.port).value().socket;
  wait_for(listener.socket.fd(), POLLIN);
  out[1].socket = accept_from(listener);
  for (size_t i = 0; i < 2; ++i)
    out[i].session = std::make_unique<tls::Session>(*job(), out[i].socket.fd(),
                                                    i == 0 ? tls::Side::kConnects : tls::Side::kAccepts);
  while (!out[0].session->established() || !out[1].session->established())
    for (PeerSocket& side : out) {
      if (side.session->established()) continue;
      const auto done = side.session->handshake();
      REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message()));
    }
  return out;
}

// A pump with one connection, and the socket by which this test reads and writes it.
struct Pumped {
  std::unique_ptr<Pump> pump;
  Socket end;
  explicit Pumped(PeerSocket connection) {
    std::vector<PeerSocket> all(2);  // one is no connection, as a worker's own
    all[1] = std::move(connection);
    pump = Pump::start(all).value();
    CHECK(!all[0].open());
    CHECK(all[1].session == nullptr);
    end = std::move(all[1].socket);
  }
};

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) {
      REQUIRE(errno == EAGAIN);
      wait_for(fd, POLLOUT);
    } else {
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
}

// All bytes until the stream ends or is broken.
std::string read_to_end(int fd) {
  std::string out, buffer(100'000, '\0');
  while (true) {
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EAGAIN) {
      wait_for(fd, POLLIN);
      continue;
    }
    if (n <= 0) return out;
    out.append(buffer, 0, static_cast<size_t>(n));
  }
}

std::string random_bytes(std::mt19937_64& rng, size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng());
  return out;
}

TEST_CASE("a pump carries all bytes in both directions at once, in pieces of any size") {
  std::mt19937_64 rng(test_seed());
  INFO("seed ", test_seed());
  auto sides = connected();
  const std::array<Pumped, 2> pumped{Pumped(std::move(sides[0])), Pumped(std::move(sides[1]))};
  std::array<std::string, 2> sent, got;
  for (std::string& text : sent) text = random_bytes(rng, 3'000'000 + rng() % 1'000'000);
  std::array<size_t, 2> at{};
  std::string buffer(500'000, '\0');
  while (got[0].size() < sent[1].size() || got[1].size() < sent[0].size()) {
    std::array<pollfd, 2> polls{};
    for (size_t i = 0; i < 2; ++i)
      polls[i] = {pumped[i].end.fd(), static_cast<short>(at[i] < sent[i].size() ? POLLIN | POLLOUT : POLLIN),
                  0};
    REQUIRE(::poll(polls.data(), 2, kEvent) > 0);
    for (size_t i = 0; i < 2; ++i) {
      const size_t size = std::min(sent[i].size() - at[i], size_t{1} << (rng() % 20));
      if (size > 0) {
        const ssize_t n = ::send(pumped[i].end.fd(), sent[i].data() + at[i], size, MSG_NOSIGNAL);
        if (n > 0) at[i] += static_cast<size_t>(n);
      }
      const ssize_t n = ::recv(pumped[i].end.fd(), buffer.data(), 1 + rng() % buffer.size(), 0);
      if (n > 0) got[i].append(buffer, 0, static_cast<size_t>(n));
    }
  }
  CHECK(got[0] == sent[1]);
  CHECK(got[1] == sent[0]);
}

TEST_CASE("one direction that has ended leaves the other open") {
  auto sides = connected();
  const Pumped one(std::move(sides[0])), other(std::move(sides[1]));
  write_all(one.end.fd(), "all of it");
  REQUIRE(::shutdown(one.end.fd(), SHUT_WR) == 0);
  CHECK(read_to_end(other.end.fd()) == "all of it");
  write_all(other.end.fd(), "an answer");
  REQUIRE(::shutdown(other.end.fd(), SHUT_WR) == 0);
  CHECK(read_to_end(one.end.fd()) == "an answer");
}

TEST_CASE("what was written before the end arrives, though the pump ends at once") {
  std::mt19937_64 rng(test_seed());
  auto sides = connected();
  const Pumped other(std::move(sides[1]));
  const std::string text = random_bytes(rng, 60'000);
  {
    Pumped one(std::move(sides[0]));
    write_all(one.end.fd(), text);
    one.end.close();
  }
  CHECK(read_to_end(other.end.fd()) == text);
}

TEST_CASE("a connection that is reset ends the socket, after what came before") {
  auto sides = connected();
  const Pumped one(std::move(sides[0]));
  REQUIRE(sides[1].session->write("before").value() == 6);
  std::array<char, 6> text{};
  wait_for(one.end.fd(), POLLIN);
  CHECK(::recv(one.end.fd(), text.data(), text.size(), 0) == 6);
  const linger now{1, 0};
  REQUIRE(::setsockopt(sides[1].socket.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
  sides[1].socket.close();
  CHECK(read_to_end(one.end.fd()).empty());
}

TEST_CASE("bytes of no worker on the connection end the socket") {
  auto sides = connected();
  const Pumped one(std::move(sides[0]));
  REQUIRE(::send(sides[1].socket.fd(), "0123456789", 10, MSG_NOSIGNAL) == 10);
  CHECK(read_to_end(one.end.fd()).empty());
}

TEST_CASE("a pump that ends in the middle of a message, on either side, ends the other one's socket") {
  std::mt19937_64 rng(test_seed());
  for (const size_t ends : {size_t{0}, size_t{1}}) {
    auto sides = connected();
    std::array<Pumped, 2> pumped{Pumped(std::move(sides[0])), Pumped(std::move(sides[1]))};
    // More than all buffers on the way hold, so that both pumps wait.
    const std::string text = random_bytes(rng, 100'000);
    std::string sent;
    while (true) {
      pollfd there{pumped[0].end.fd(), POLLOUT, 0};
      if (::poll(&there, 1, 50) == 0) break;
      const ssize_t n = ::send(pumped[0].end.fd(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n > 0) sent.append(text, 0, static_cast<size_t>(n));
    }
    pumped[ends].end.close();
    pumped[ends].pump.reset();
    const std::string got = read_to_end(pumped[1 - ends].end.fd());
    if (ends == 0) CHECK(sent.starts_with(got));
    if (ends == 1) CHECK(got.empty());
  }
}

TEST_CASE("a pump ends while nobody reads, and leaves no file and no thread behind") {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  (void)job();
  const auto files = count("/proc/self/fd");
  const auto threads = count("/proc/self/task");
  for (int i = 0; i < 5; ++i) {
    std::vector<PeerSocket> all;
    for (int n = 0; n < 3; ++n)
      for (PeerSocket& side : connected()) all.push_back(std::move(side));
    const auto pump = Pump::start(all).value();
    for (const PeerSocket& side : all) write_all(side.socket.fd(), "a word");
  }
  CHECK(count("/proc/self/fd") == files);
  // The system still lists a thread for a moment after it was joined, so the first count may be high, too.
  for (int i = 0; i < 300'000 && count("/proc/self/task") > threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(count("/proc/self/task") <= threads);
}

}  // namespace
}  // namespace ostro::dist
