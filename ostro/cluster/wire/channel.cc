#include "ostro/cluster/wire/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ostro::cluster {
namespace {

constexpr size_t kHeader = 4;
constexpr size_t kMostWaiting = size_t{8} << 20;

}  // namespace

Status Channel::fill(size_t most) {
  static constexpr int kMostReads = 16;
  in_.erase(0, used_);
  used_ = 0;
  std::array<char, 16384> bytes;
  for (int i = 0; i < kMostReads && in_.size() < kHeader + most; ++i) {
    const size_t room = std::min(bytes.size(), kHeader + most - in_.size());
    const ssize_t got = recv(fd(), bytes.data(), room, 0);
    if (got == 0) return io_error("the connection was closed");
    if (got < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno == EINTR) continue;
      return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    }
    heard_ = true;
    moved_ += got;
    in_.append(bytes.data(), static_cast<size_t>(got));
    if (static_cast<size_t>(got) < room) return {};
  }
  return {};
}

Result<std::optional<std::string_view>> Channel::next(size_t most) {
  const std::string_view rest = std::string_view(in_).substr(used_);
  if (rest.size() < kHeader) return std::optional<std::string_view>();
  size_t size = 0;
  for (size_t i = 0; i < kHeader; ++i)
    size |= static_cast<size_t>(static_cast<unsigned char>(rest[i])) << (8 * i);
  if (size == 0 || size > most)
    return corrupt(fmt::format("a message of {} bytes; 1 to {} are allowed", size, most));
  if (rest.size() < kHeader + size) return std::optional<std::string_view>();
  used_ += kHeader + size;
  return std::optional(rest.substr(kHeader, size));
}

bool Channel::push(std::string_view message) {
  if (out_.size() - sent_ + message.size() > kMostWaiting) return false;
  for (size_t i = 0; i < kHeader; ++i) out_.push_back(static_cast<char>(message.size() >> (8 * i)));
  out_.append(message);
  return true;
}

Status Channel::flush() {
  while (wants_to_write()) {
    // Without MSG_NOSIGNAL a connection that the other side has closed would end the process.
    const ssize_t put = send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      if (errno == EINTR) continue;
      return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    }
    sent_ += static_cast<size_t>(put);
    moved_ += put;
  }
  // Written bytes are removed when all are written, or half of the limit, not at every call: a slow reader's
  // 8 MiB would be moved each time.
  if (!wants_to_write() || sent_ >= kMostWaiting / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return {};
}

bool Channel::heard() { return std::exchange(heard_, false); }
int64_t Channel::take_moved() { return std::exchange(moved_, 0); }

void Channel::finish() { shutdown(fd(), SHUT_WR); }

}  // namespace ostro::cluster
