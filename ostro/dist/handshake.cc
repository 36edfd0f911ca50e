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
    : peer_socket_{std::move(socket), nullptr},
      names_(&names),
      peer_(peer),
      came_(came),
      connecting_(!came),
      told_(!came),
      nonce_(new_nonce()),
      since_(std::chrono::steady_clock::now()) {
  if (names.certificates)
    peer_socket_.session = std::make_unique<tls::Session>(*names.certificates, fd(),
                                                          came ? tls::Side::kAccepts : tls::Side::kConnects);
  if (came) from_ = peer_address(fd());  // later it may have closed the connection
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

bool Handshake::wants_to_write() const {
  const tls::Session* session = peer_socket_.session.get();
  if (session == nullptr) return connecting_ || sent_ < out_.size();
  return connecting_ || session->wants_to_write();  // what is to be sent waits for the handshake of TLS
}

// It contains both ranks, so that a worker's own proof cannot be sent back to it, the length of the prefix,
// so that no two groups give the same text, and what binds it to this TLS connection, so that one who stands
// between two workers cannot pass it on.
std::string Handshake::proof_of(int64_t from, int64_t to, std::string_view nonce) const {
  const Sha256Digest code =
      hmac_sha256(names_->secret, fmt::format("ostro pair\n{}:{}\n{}\n{}\n{}{}", names_->prefix.size(),
                                              names_->prefix, from, to, nonce, binding_));
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
    pollfd there{fd(), POLLOUT, 0};
    if (::poll(&there, 1, 0) <= 0) return Status();
    if (const int failed = connect_error(peer_socket_.socket); failed != 0)
      return io_error(fmt::format("lost worker {}: connecting to it: {}", peer_, std::strerror(failed)));
    connecting_ = false;
  }
  if (peer_socket_.session && !peer_socket_.session->established()) {
    RETURN_IF_ERROR(secure());
    if (!peer_socket_.session->established()) return Status();
  }
  while (true) {
    while (sent_ < out_.size()) {
      ASSIGN_OR_RETURN(const size_t n, send(std::string_view(out_).substr(sent_)));
      if (n == 0) return Status();
      sent_ += n;
    }
    if (done_) return verdict_;
    std::array<char, 256> bytes;
    ASSIGN_OR_RETURN(const size_t n, receive(std::span(bytes).first(wanted() - in_.size())));
    if (n == 0) return Status();
    in_.append(bytes.data(), n);
    if (in_.size() == wanted()) RETURN_IF_ERROR(take_message());
  }
}

// Goes on with the handshake of TLS.
Status Handshake::secure() {
  std::array<char, kHello.size()> first;
  const ssize_t n = came_ ? ::recv(fd(), first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT) : 0;
  if (n > 0 && kHello.starts_with(std::string_view(first.data(), static_cast<size_t>(n))))
    return corrupt(
        "a worker without TLS connects, and this one has trainer.tls: job; give it the same option");
  const auto done = peer_socket_.session->handshake();
  if (!done.ok())
    return came_ ? done.error() : done.error().with_context(fmt::format("lost worker {}", peer_));
  if (*done) binding_ = peer_socket_.session->binding();
  return Status();
}

Result<size_t> Handshake::send(std::string_view bytes) {
  if (peer_socket_.session) {
    auto sent = peer_socket_.session->write(bytes);
    if (!sent.ok()) return sent.error().with_context(fmt::format("lost worker {}", peer_));
    return sent;
  }
  while (true) {
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return io_error(fmt::format("lost worker {}: {}", peer_, std::strerror(errno)));
  }
}

Result<size_t> Handshake::receive(std::span<char> bytes) {
  const auto lost = [&](const char* why) { return io_error(fmt::format("lost worker {}: {}", peer_, why)); };
  if (peer_socket_.session) {
    const auto got = peer_socket_.session->read(bytes);
    if (!got.ok()) return got.error().with_context(fmt::format("lost worker {}", peer_));
    if (got->end) return lost("it closed the connection");
    return got->bytes;
  }
  while (true) {
    const ssize_t n = ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0) return lost("it closed the connection");
    if (errno == EAGAIN) return size_t{0};
    if (errno != EINTR) return lost(std::strerror(errno));
  }
}

}  // namespace ostro::dist
