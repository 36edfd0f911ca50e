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

constexpr size_t kMostWaiting = size_t{8} << 20;

}  // namespace

void Channel::secure(tls::Certificates& certificates, tls::Side side) {
  session_ = std::make_unique<tls::Session>(certificates, fd(), side);
}

std::string Channel::binding() const {
  return session_ && session_->established() ? session_->binding() : "";
}

Result<bool> Channel::ready() {
  if (!session_ || session_->established()) return true;
  return session_->handshake();
}

Result<size_t> Channel::receive(std::span<char> bytes) {
  if (session_) {
    ASSIGN_OR_RETURN(const tls::Got got, session_->read(bytes));
    if (got.end) return io_error("the connection was closed");
    return got.bytes;
  }
  while (true) {
    const ssize_t got = recv(fd(), bytes.data(), bytes.size(), 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return io_error("the connection was closed");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
  }
}

Result<size_t> Channel::send(std::string_view bytes) {
  if (session_) return session_->write(bytes);
  while (true) {
    // Without MSG_NOSIGNAL a connection that the other side has closed would end the process.
    const ssize_t put = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put >= 0) return static_cast<size_t>(put);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
  }
}

Status Channel::fill(size_t most) {
  static constexpr int kMostReads = 16;
  ASSIGN_OR_RETURN(const bool is_ready, ready());
  if (!is_ready) return {};
  in_.erase(0, used_);
  used_ = 0;
  std::array<char, 16384> bytes;
  for (int i = 0; i < kMostReads && in_.size() < kHeader + most; ++i) {
    const size_t room = std::min(bytes.size(), kHeader + most - in_.size());
    ASSIGN_OR_RETURN(const size_t got, receive(std::span(bytes).first(room)));
    if (got == 0) return {};
    heard_ = true;
    moved_ += static_cast<int64_t>(got);
    in_.append(bytes.data(), got);
    if (got < room) return {};
  }
  return {};
}

std::string Channel::framed(std::string_view message) {
  std::string out;
  out.reserve(kHeader + message.size());
  for (size_t i = 0; i < kHeader; ++i) out.push_back(static_cast<char>(message.size() >> (8 * i)));
  return out.append(message);
}

std::optional<size_t> Channel::size_of(std::string_view bytes) {
  if (bytes.size() < kHeader) return std::nullopt;
  size_t size = 0;
  for (size_t i = 0; i < kHeader; ++i)
    size |= static_cast<size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return size;
}

std::optional<Socket> Channel::release() {
  if (session_ || used_ < in_.size() || sent_ < out_.size()) return std::nullopt;
  return std::move(socket_);
}

Result<std::optional<std::string_view>> Channel::next(size_t most) {
  const std::string_view rest = std::string_view(in_).substr(used_);
  const std::optional<size_t> size = size_of(rest);
  if (!size) return std::optional<std::string_view>();
  if (*size == 0 || *size > most)
    return corrupt(fmt::format("a message of {} bytes; 1 to {} are allowed", *size, most));
  if (rest.size() < kHeader + *size) return std::optional<std::string_view>();
  used_ += kHeader + *size;
  return std::optional(rest.substr(kHeader, *size));
}

bool Channel::push(std::string_view message) {
  if (out_.size() - sent_ + message.size() > kMostWaiting) return false;
  out_ += framed(message);
  return true;
}

// What is pushed during the handshake of TLS waits for its end, which poll() shows by bytes to read.
bool Channel::wants_to_write() const {
  if (session_ && !session_->established()) return session_->wants_to_write();
  return sent_ < out_.size();
}

Status Channel::flush() {
  ASSIGN_OR_RETURN(const bool is_ready, ready());
  if (!is_ready) return {};
  while (sent_ < out_.size()) {
    ASSIGN_OR_RETURN(const size_t put, send(std::string_view(out_).substr(sent_)));
    if (put == 0) break;
    sent_ += put;
    moved_ += static_cast<int64_t>(put);
  }
  // Written bytes are removed when all are written, or half of the limit, not at every call: a slow reader's
  // 8 MiB would be moved each time.
  if (sent_ == out_.size() || sent_ >= kMostWaiting / 2) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
  return {};
}

bool Channel::heard() { return std::exchange(heard_, false); }
int64_t Channel::take_moved() { return std::exchange(moved_, 0); }

void Channel::finish() {
  if (session_)
    session_->finish();
  else
    shutdown(fd(), SHUT_WR);
}

}  // namespace ostro::cluster
