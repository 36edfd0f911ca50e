#include "ostro/dist/pump.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <memory>
#include <thread>
#include <utility>

namespace ostro::dist {
namespace {

constexpr size_t kMostThreads = 4;
constexpr size_t kBufferBytes = size_t{256} << 10;  // of each direction of a connection
constexpr int kSocketBytes = 1 << 20;               // that a socket within the process holds, if it may
constexpr int kMostRounds = 16;                     // with one connection while others wait

// Bytes that were read and are not written yet. Pages that are never used take no memory.
struct Carried {
  std::unique_ptr<char[]> bytes = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  size_t at = 0, end = 0;

  bool empty() const { return at == end; }
  std::span<char> room() { return {bytes.get(), kBufferBytes}; }  // when it is empty
  std::string_view rest() const { return {bytes.get() + at, end - at}; }
  void fill(size_t size) { at = 0, end = size; }
};

bool only_waits() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A connection and its socket within the process.
class Line {
 public:
  Line(PeerSocket connection, Socket local) : connection_(std::move(connection)), local_(std::move(local)) {}

  // Moves what can be moved without waiting.
  void turn() {
    bool moved = true;
    for (int round = 0; round < kMostRounds && moved && !over_; ++round) {
      moved = outward();
      if (!over_) moved = inward() || moved;
    }
  }
  // Moves what was written to the socket within the process before that was closed.
  void drain() {
    while (!over_ && outward()) {
    }
    if (!over_ && !finished_) connection_.session->finish();
  }
  bool over() const { return over_; }
  bool has_unread() const { return in_.empty() && !peer_ended_ && connection_.session->has_unread(); }

  // What to wait for. A descriptor of which nothing is wanted is left out: its end would wake this thread
  // again and again.
  std::array<pollfd, 2> wanted() const {
    const tls::Session& session = *connection_.session;
    short local = 0, far = 0;
    if (out_.empty() && !local_ended_) local |= POLLIN;
    if (!in_.empty()) local |= POLLOUT;
    if (in_.empty() && !peer_ended_) far |= POLLIN;
    if (session.wants_to_write()) far |= POLLOUT;
    return {pollfd{local == 0 ? -1 : local_.fd(), local, 0},
            pollfd{far == 0 ? -1 : connection_.socket.fd(), far, 0}};
  }

 private:
  // From the process to the other worker. Returns whether anything has moved.
  bool outward() {
    bool moved = false;
    if (out_.empty() && !local_ended_) {
      const ssize_t n = ::recv(local_.fd(), out_.room().data(), kBufferBytes, MSG_DONTWAIT);
      if (n < 0 && !only_waits()) return end();
      if (n == 0) local_ended_ = true;
      if (n > 0) out_.fill(static_cast<size_t>(n));
      moved = n >= 0;
    }
    if (!out_.empty()) {
      const auto sent = connection_.session->write(out_.rest());
      if (!sent.ok()) return end();
      out_.at += *sent;
      moved = moved || *sent > 0;
    }
    if (local_ended_ && out_.empty() && !std::exchange(finished_, true)) {
      connection_.session->finish();
      moved = true;
    }
    return moved;
  }

  // From the other worker to the process.
  bool inward() {
    bool moved = false;
    if (in_.empty() && !peer_ended_) {
      const auto got = connection_.session->read(in_.room());
      if (!got.ok()) return end();
      in_.fill(got->bytes);
      peer_ended_ = got->end;
      moved = got->bytes > 0 || got->end;
    }
    if (!in_.empty()) {
      const ssize_t n =
          ::send(local_.fd(), in_.rest().data(), in_.rest().size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && !only_waits()) return end();
      if (n > 0) in_.at += static_cast<size_t>(n);
      moved = moved || n > 0;
    }
    if (peer_ended_ && in_.empty() && !std::exchange(told_, true)) {
      ::shutdown(local_.fd(), SHUT_WR);
      moved = true;
    }
    if (told_ && finished_) end();
    return moved;
  }

  // Both sides see the end: bytes that the socket within the process has can still be read there.
  bool end() {
    over_ = true;
    connection_.session.reset();
    connection_.socket.close();
    local_.close();
    return false;
  }

  PeerSocket connection_;
  Socket local_;
  Carried out_, in_;
  bool local_ended_ = false, finished_ = false;  // the process has said all; the other worker was told
  bool peer_ended_ = false, told_ = false;       // the other worker has said all; the process was told
  bool over_ = false;
};

}  // namespace

// A thread with some of the connections.
class Pump::Carrier {
 public:
  explicit Carrier(Socket event) : event_(std::move(event)) {}
  ~Carrier() {
    if (!thread_.joinable()) return;
    stopped_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(event_.fd(), &one, sizeof one);
    thread_.join();
  }
  void add(PeerSocket connection, Socket local) {
    lines_.emplace_back(std::move(connection), std::move(local));
  }
  void start() {
    thread_ = std::thread([this] { run(); });
  }

 private:
  void run() {
    while (!stopped_) {
      bool unread = false;
      for (Line& line : lines_) {
        line.turn();
        unread = unread || (!line.over() && line.has_unread());
      }
      lines_.remove_if([](const Line& line) { return line.over(); });
      polls_.assign(1, pollfd{event_.fd(), POLLIN, 0});
      for (const Line& line : lines_)
        for (const pollfd& wanted : line.wanted()) polls_.push_back(wanted);
      ::poll(polls_.data(), polls_.size(), unread ? 0 : -1);
    }
    for (Line& line : lines_) line.drain();
    lines_.clear();
  }

  const Socket event_;  // wakes the thread when it is to end
  std::atomic<bool> stopped_ = false;
  std::list<Line> lines_;  // of the thread, once it runs
  std::vector<pollfd> polls_;
  std::thread thread_;
};

Pump::Pump() = default;
Pump::~Pump() = default;

Result<std::unique_ptr<Pump>> Pump::start(std::vector<PeerSocket>& connections) {
  std::unique_ptr<Pump> pump(new Pump);
  const auto none_left = [] {
    return io_error(fmt::format("no descriptor is left: {}", std::strerror(errno)));
  };
  size_t next = 0;
  for (PeerSocket& connection : connections) {
    if (connection.session == nullptr) continue;
    if (pump->carriers_.size() < kMostThreads) {
      Socket event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (!event.open()) return none_left();
      pump->carriers_.push_back(std::make_unique<Carrier>(std::move(event)));
    }
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return none_left();
    for (const int fd : ends)
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
    pump->carriers_[next++ % pump->carriers_.size()]->add(std::exchange(connection, PeerSocket{}),
                                                          Socket(ends[0]));
    connection.socket = Socket(ends[1]);
  }
  for (const auto& carrier : pump->carriers_) carrier->start();
  return pump;
}

}  // namespace ostro::dist
