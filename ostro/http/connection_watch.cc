#include "ostro/http/connection_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "ostro/base/check.h"

namespace ostro::http {
namespace {

// An event of epoll has 64 bits of ours: the socket, and the lower half of its number.
uint64_t data_of(int socket, uint64_t number) { return number << 32 | static_cast<uint32_t>(socket); }

}  // namespace

ConnectionWatch::ConnectionWatch(size_t most_expected)
    : most_expected_(most_expected),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  OSTRO_CHECK(epoll_ >= 0 && event_ >= 0, "no file descriptors for watching connections");
  epoll_event woken{};
  woken.events = EPOLLIN;
  woken.data.u64 = data_of(event_, 0);
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &woken);
  thread_ = std::thread([this] { watch(); });
}

ConnectionWatch::~ConnectionWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake();
  thread_.join();
  ::close(epoll_);
  ::close(event_);
}

void ConnectionWatch::wake() const {
  const uint64_t one = 1;
  (void)!::write(event_, &one, sizeof one);
}

void ConnectionWatch::expect(int socket, std::chrono::milliseconds limit) {
  {
    const std::lock_guard lock(mutex_);
    Watched& watched = sockets_[socket];
    watched.has_header = watched.number != 0;
    if (!watched.has_header) {
      watched.number = ++last_number_;
      epoll_event closing{};
      closing.events = EPOLLRDHUP | EPOLLONESHOT;
      closing.data.u64 = data_of(socket, watched.number);
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &closing);
    }
    watched.due = Clock::now() + limit;
    shut_down_oldest();
  }
  wake();
}

void ConnectionWatch::wait(int socket, std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    Watched& watched = sockets_[socket];
    watched.due = Clock::time_point::max();
    watched.has_request = true;
    if (!watched.closed) {
      watched.left = std::move(left);
      return;
    }
  }
  left();
}

void ConnectionWatch::answer(int socket, std::chrono::milliseconds limit) {
  {
    const std::lock_guard lock(mutex_);
    Watched& watched = sockets_[socket];
    watched.has_request = true;
    watched.due = Clock::now() + limit;
  }
  wake();
}

void ConnectionWatch::end(int socket) {
  const std::lock_guard lock(mutex_);
  if (sockets_.erase(socket) > 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
}

bool ConnectionWatch::shut_down_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [socket, watched] : sockets_) shut_down(socket, watched);
  return sockets_.empty();
}

// The server closes it then.
void ConnectionWatch::shut_down(int socket, Watched& watched) {
  ::shutdown(socket, SHUT_RDWR);
  watched.due = Clock::time_point::max();
}

// Those that have brought their header go last, so that many idle ones do not end the uploads of others.
void ConnectionWatch::shut_down_oldest() {
  if (sockets_.size() <= most_expected_) return;
  const auto rank = [](const Watched& one) { return std::pair(one.has_header, one.number); };
  size_t expected = 0;
  auto oldest = sockets_.end();
  for (auto one = sockets_.begin(); one != sockets_.end(); ++one) {
    if (one->second.has_request || one->second.due == Clock::time_point::max()) continue;
    ++expected;
    if (oldest == sockets_.end() || rank(one->second) < rank(oldest->second)) oldest = one;
  }
  if (expected > most_expected_) shut_down(oldest->first, oldest->second);
}

int ConnectionWatch::shut_down_late_ones() {
  const Clock::time_point now = Clock::now();
  Clock::time_point next = Clock::time_point::max();
  for (auto& [socket, watched] : sockets_) {
    if (watched.due <= now) shut_down(socket, watched);
    next = std::min(next, watched.due);
  }
  if (next == Clock::time_point::max()) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next - now).count());
}

void ConnectionWatch::watch() {
  constexpr int kMost = 64;
  epoll_event events[kMost];
  int timeout = -1;
  while (true) {
    const int count = ::epoll_wait(epoll_, events, kMost, timeout);
    std::vector<std::function<void()>> left;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      for (int i = 0; i < count; ++i) {
        const auto socket = static_cast<int>(static_cast<uint32_t>(events[i].data.u64));
        if (socket == event_) {
          uint64_t times = 0;
          (void)!::read(event_, &times, sizeof times);
          continue;
        }
        const auto found = sockets_.find(socket);
        if (found == sockets_.end() || data_of(socket, found->second.number) != events[i].data.u64) continue;
        found->second.closed = true;
        if (found->second.left) left.push_back(std::move(found->second.left));
        found->second.left = nullptr;
      }
      timeout = shut_down_late_ones();
    }
    for (const auto& call : left) call();
  }
}

}  // namespace ostro::http
