#include "ostro/dist/handshake.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ostro::dist {
namespace {

// The one that connects: kHello, its rank, a nonce. The other: a nonce and a proof over the first. The one
// that connects: a proof over the second.
constexpr std::string_view kHello = "ostropr1";
constexpr size_t kRankBytes = sizeof(int64_t);
constexpr size_t kNonceBytes = sizeof(Nonce), kProofBytes = sizeof(Sha256Digest);

std::string_view text_of_nonce(const Nonce& nonce) { return {nonce.data(), nonce.size()}; }

}  // namespace

Handshake::Handshake(Socket socket, const HandshakeNames& names, int64_t peer, bool came)
    : socket_(std::move(socket)),
      names_(&names),
      peer_(peer),
      came_(came),
      connecting_(!came),
      told_(!came),
      nonce_(new_nonce()),
      since_(std::chrono::steady_clock::now()) {
  if (came) return;
  out_ = kHello;
  out_.append(reinterpret_cast<const char*>(&names.rank), kRankBytes);
  out_ += text_of_nonce(nonce_);
}

Handshake Handshake::to(int64_t peer, Socket socket, const HandshakeNames& names) {
  return Handshake(std::move(socket), names, peer, false);
}

Handshake Handshake::from_anybody(Socket socket, const HandshakeNames& names) {
  return Handshake(std::move(socket), names, -1, true);
}

// It contains both ranks, so that a worker's own proof cannot be sent back to it, and the length of the
// prefix, so that no two groups give the same text.
std::string Handshake::proof_of(int64_t from, int64_t to, std::string_view nonce) const {
  const Sha256Digest code = hmac_sha256(
      names_->secret,
      fmt::format("ostro pair\n{}:{}\n{}\n{}\n{}", names_->prefix.size(), names_->prefix, from, to, nonce));
  return {reinterpret_cast<const char*>(code.data()), code.size()};
}

Status Handshake::check_proof(std::string_view proof) const {
  if (same_code(proof, proof_of(peer_, names_->rank, text_of_nonce(nonce_)))) return Status();
  return invalid_argument(fmt::format(
      "worker {} did not prove to worker {} that it knows the job's secret: do both have the same secret?",
      peer_, names_->rank));
}

size_t Handshake::wanted() const {
  if (!told_) return kHello.size() + kRankBytes + kNonceBytes;
  return came_ ? kProofBytes : kNonceBytes + kProofBytes;
}

// A message that is there as a whole.
Status Handshake::take_message() {
  const std::string message = std::exchange(in_, "");
  const std::string_view text = message;
  if (!told_) {
    std::memcpy(&peer_, message.data() + kHello.size(), kRankBytes);
    // Workers connect to those of lower rank.
    if (text.substr(0, kHello.size()) != kHello || peer_ <= names_->rank || peer_ >= names_->size) {
      peer_ = -1;
      return invalid_argument("a connection is not a worker's");
    }
    told_ = true;
    out_ = text_of_nonce(nonce_);
    out_ += proof_of(names_->rank, peer_, text.substr(kHello.size() + kRankBytes));
    sent_ = 0;
    return Status();
  }
  verdict_ = check_proof(came_ ? text : text.substr(kNonceBytes));
  done_ = true;
  if (came_) return Status();
  // Also to one that has another secret: it is to learn that, too.
  out_ = proof_of(names_->rank, peer_, text.substr(0, kNonceBytes));
  sent_ = 0;
  return Status();
}

Status Handshake::turn() {
  if (connecting_) {
    pollfd there{socket_.fd(), POLLOUT, 0};
    if (::poll(&there, 1, 0) <= 0) return Status();
    if (const int failed = connect_error(socket_); failed != 0)
      return io_error(fmt::format("lost worker {}: connecting to it: {}", peer_, std::strerror(failed)));
    connecting_ = false;
  }
  while (true) {
    while (sent_ < out_.size()) {
      const ssize_t n =
          ::send(socket_.fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return Status();
      if (n < 0) return io_error(fmt::format("lost worker {}: {}", peer_, std::strerror(errno)));
      sent_ += static_cast<size_t>(n);
    }
    if (done_) return verdict_;
    std::array<char, 256> bytes;
    const ssize_t n = ::recv(socket_.fd(), bytes.data(), wanted() - in_.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Status();
    if (n <= 0)
      return io_error(fmt::format("lost worker {}: {}", peer_,
                                  n == 0 ? "it closed the connection" : std::strerror(errno)));
    in_.append(bytes.data(), static_cast<size_t>(n));
    if (in_.size() == wanted()) RETURN_IF_ERROR(take_message());
  }
}

}  // namespace ostro::dist
