#include "ostro/cluster/relay/relay_hub.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "ostro/base/open_files.h"

namespace ostro::cluster {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;  // of each direction of a pair, at most
constexpr int kMostRounds = 16;                     // with one pair while others wait
constexpr int64_t kFilesOfMembers = 1024;

// The way of the bytes from one end to the other.
struct Way {
  std::string kept;  // what the end that receives has not taken yet
  size_t at = 0;
  bool ended = false;  // the end that sends has said all
  bool told = false;   // the end that receives knows that

  bool empty() const { return at == kept.size(); }
};

bool has_to_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

// Two joined ends.
class RelayHub::Line {
 public:
  Line(dist::Socket one, dist::Socket other, const std::string& first)
      : ends_{std::move(one), std::move(other)} {
    for (Way& way : ways_) way.kept = first;
  }

  // Moves what can be moved without waiting, through `buffer`. Returns how many bytes were delivered.
  int64_t turn(std::span<char> buffer) {
    if (!std::exchange(due_, false)) return 0;
    int64_t delivered = 0;
    bool moved = true;
    for (int round = 0; round < kMostRounds && moved && !over_; ++round) {
      moved = false;
      for (size_t from = 0; from < 2 && !over_; ++from) moved = move(from, buffer, delivered) || moved;
    }
    return delivered;
  }
  bool over() const { return over_; }
  // Something can be moved, as poll() has said.
  void wake() { due_ = true; }

  // What to wait for. A descriptor of which nothing is wanted is left out: its end would wake the thread
  // again and again.
  std::array<pollfd, 2> wanted() const {
    std::array<pollfd, 2> out{};
    for (size_t i = 0; i < 2; ++i) {
      short events = 0;
      if (ways_[i].empty() && !ways_[i].ended) events |= POLLIN;
      if (!ways_[1 - i].empty()) events |= POLLOUT;
      out[i] = {events == 0 ? -1 : ends_[i].fd(), events, 0};
    }
    return out;
  }

 private:
  // On the way that begins at an end. Returns whether anything has moved.
  bool move(size_t from, std::span<char> buffer, int64_t& delivered) {
    Way& way = ways_[from];
    bool moved = false;
    std::string_view bytes = std::string_view(way.kept).substr(way.at);
    const bool reads = bytes.empty() && !way.ended;
    if (reads) {
      const ssize_t got = ::recv(ends_[from].fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && !has_to_wait()) return end();
      if (got >= 0) way.ended = got == 0, moved = true;
      if (got > 0) bytes = {buffer.data(), static_cast<size_t>(got)};
    }
    if (!bytes.empty()) {
      const ssize_t put =
          ::send(ends_[1 - from].fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put < 0 && !has_to_wait()) return end();
      if (put > 0) bytes.remove_prefix(static_cast<size_t>(put)), delivered += put, moved = true;
      if (bytes.empty())
        way.kept = std::string(), way.at = 0;  // gives the memory back
      else if (reads)
        way.kept = bytes, way.at = 0;
      else
        way.at = way.kept.size() - bytes.size();
    }
    if (way.ended && way.empty() && !std::exchange(way.told, true)) {
      ::shutdown(ends_[1 - from].fd(), SHUT_WR);
      moved = true;
    }
    if (ways_[0].told && ways_[1].told) return end();
    return moved;
  }

  // Both ends see it.
  bool end() {
    over_ = true;
    for (dist::Socket& socket : ends_) socket.close();
    return false;
  }

  std::array<dist::Socket, 2> ends_;
  std::array<Way, 2> ways_;  // by the end at which each begins
  bool over_ = false, due_ = true;
};

int64_t most_relay_ends() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return kMostOpenFiles;
  const auto all = static_cast<int64_t>(std::min<rlim_t>(files.rlim_cur, kMostOpenFiles));
  return all - std::min(all / 2, kFilesOfMembers);
}

RelayHub::RelayHub(std::string joined, std::chrono::milliseconds silence, RelayLimits limits)
    : joined_(std::move(joined)), silence_(silence), limits_(limits) {}

RelayHub::~RelayHub() {
  stopped_ = true;
  waker_.wake();
  if (thread_.joinable()) thread_.join();
}

void RelayHub::add(RelayEnd end, Socket socket) {
  Waiting waiting{end.own, dist::Socket(socket.release()), Clock::now() + limits_.waits};
  dist::break_when_silent(waiting.socket, silence_);
  {
    const std::lock_guard lock(mutex_);
    new_.emplace_back(Key(std::move(end.group), std::min(end.own, end.peer), std::max(end.own, end.peer)),
                      std::move(waiting));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  waker_.wake();
}

bool RelayHub::has_room() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(held_ + new_.size()) < limits_.ends;
}

void RelayHub::run() {
  std::vector<char> buffer(kBufferBytes);
  std::vector<pollfd> polls;
  while (!stopped_) {
    take_new();
    pairs_ = static_cast<int64_t>(lines_.size());  // before their workers learn that they are joined
    for (Line& line : lines_) bytes_ += line.turn(buffer);
    lines_.remove_if([](const Line& line) { return line.over(); });
    pairs_ = static_cast<int64_t>(lines_.size());
    drop_late();
    {
      const std::lock_guard lock(mutex_);
      held_ = waiting_.size() + 2 * lines_.size();
    }
    polls.assign(1, pollfd{waker_.fd(), POLLIN, 0});
    for (const auto& [key, end] : waiting_) polls.push_back({end.socket.fd(), POLLIN, 0});
    const size_t waits = polls.size();
    for (const Line& line : lines_)
      for (const pollfd& wanted : line.wanted()) polls.push_back(wanted);
    if (::poll(polls.data(), polls.size(), until_next()) < 0) continue;
    if (polls[0].revents != 0) waker_.clear();
    std::vector<int> readable;
    for (size_t i = 1; i < waits; ++i)
      if (polls[i].revents != 0) readable.push_back(polls[i].fd);
    size_t i = waits;
    for (Line& line : lines_) {
      if (polls[i].revents != 0 || polls[i + 1].revents != 0) line.wake();
      i += 2;
    }
    drop_gone(readable);
  }
}

void RelayHub::take_new() {
  std::list<std::pair<Key, Waiting>> come;
  {
    const std::lock_guard lock(mutex_);
    come.swap(new_);
    held_ += come.size();
  }
  for (auto& [key, end] : come) meet(key, std::move(end));
}

void RelayHub::meet(const Key& key, Waiting end) {
  const auto other = waiting_.find(key);
  if (other == waiting_.end() || other->second.own == end.own) {
    waiting_[key] = std::move(end);
    return;
  }
  lines_.emplace_back(std::move(other->second.socket), std::move(end.socket), joined_);
  waiting_.erase(other);
}

// One that waits says nothing: its connection has ended, or its worker does not keep to the protocol.
void RelayHub::drop_gone(const std::vector<int>& readable) {
  std::erase_if(waiting_, [&](const auto& entry) {
    return std::find(readable.begin(), readable.end(), entry.second.socket.fd()) != readable.end();
  });
}

void RelayHub::drop_late() {
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.until <= Clock::now(); });
}

// For poll().
int RelayHub::until_next() const {
  if (waiting_.empty()) return -1;
  Clock::time_point next = Clock::time_point::max();
  for (const auto& [key, end] : waiting_) next = std::min(next, end.until);
  return poll_milliseconds(next);
}

}  // namespace ostro::cluster
