// Handshake: the first messages on a connection between two workers: with certificates that of TLS; then the
// one that connects says who it is, and both prove to each other that they know the job's secret. No byte
// after the proofs is taken from the connection. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/sha256.h"
#include "ostro/dist/peer_socket.h"

namespace ostro::dist {

// The names in a proof: no proof is valid in another group, or sent back to its maker. With `certificates`
// (null: none) the connection is encrypted, and the proofs are valid on it alone.
struct HandshakeNames {
  std::string secret, prefix;
  int64_t rank = 0, size = 1;
  std::shared_ptr<tls::Certificates> certificates;
};

class Handshake {
 public:
  // to(): the handshake on a connection to `peer` that is being made. from_anybody(): on one that was
  // accepted. `names` must outlive it.
  static Handshake to(int64_t peer, Socket socket, const HandshakeNames& names);
  static Handshake from_anybody(Socket socket, const HandshakeNames& names);

  // The descriptor for poll(), and whether to wait for writing besides reading.
  int fd() const { return peer_socket_.socket.fd(); }
  bool wants_to_write() const;
  // Goes on as far as it can without waiting. Errors: kIo when the connection ends or cannot be made (on an
  // accepted connection it may be that of a stranger); kInvalidArgument when the other side does not prove
  // that it knows the secret, or has no certificate of the job; kCorrupt when it does not speak TLS.
  Status turn();
  // True when both sides have proved, and everything is sent.
  bool done() const { return done_ && verdict_.ok() && sent_ == out_.size(); }
  // The peer; -1 until it has said who it is.
  int64_t peer() const { return peer_; }
  bool came() const { return came_; }
  // Whether the connection that this worker begins is not made yet.
  bool connecting() const { return connecting_; }
  // Whether the other side speaks TLS with a certificate of this job. Without TLS its answer ends the
  // handshake.
  bool answered() const { return !binding_.empty(); }
  // Of one that came: the address that it came from.
  const std::string& from() const { return from_; }
  std::chrono::steady_clock::time_point since() const { return since_; }
  PeerSocket take() { return std::move(peer_socket_); }

 private:
  Handshake(Socket socket, const HandshakeNames& names, int64_t peer, bool came);
  Status secure();
  Status take_message();
  // The bytes that were sent or received, 0 when that would have to wait.
  Result<size_t> send(std::string_view bytes);
  Result<size_t> receive(std::span<char> bytes);
  std::string proof_of(int64_t from, int64_t to, std::string_view nonce) const;
  Status check_proof(std::string_view proof) const;
  size_t wanted() const;

  PeerSocket peer_socket_;
  const HandshakeNames* names_;
  int64_t peer_;
  bool came_, connecting_;
  bool told_ = false, done_ = false;  // the peer has said who it is; it has said all
  Status verdict_;                    // of its proof
  Nonce nonce_;
  std::string in_, out_, binding_, from_;  // binding_: of the TLS connection
  size_t sent_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace ostro::dist
