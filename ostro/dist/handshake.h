// Handshake: the first messages on a connection between two workers. The one that connects says who it is;
// both prove to each other that they know the job's secret. No byte after the proofs is read. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/sha256.h"
#include "ostro/dist/socket.h"

namespace ostro::dist {

// The names in a proof: no proof is valid in another group, or sent back to its maker.
struct HandshakeNames {
  std::string secret, prefix;
  int64_t rank = 0, size = 1;
};

class Handshake {
 public:
  // to(): the handshake on a connection to `peer` that is being made. from_anybody(): on one that was
  // accepted. `names` must outlive it.
  static Handshake to(int64_t peer, Socket socket, const HandshakeNames& names);
  static Handshake from_anybody(Socket socket, const HandshakeNames& names);

  // The descriptor for poll(), and whether to wait for writing besides reading.
  int fd() const { return socket_.fd(); }
  bool wants_to_write() const { return connecting_ || sent_ < out_.size(); }
  // Goes on as far as it can without waiting. Errors: kIo when the connection ends or cannot be made (on an
  // accepted connection it may be that of a stranger); kInvalidArgument when the other side does not prove
  // that it knows the secret.
  Status turn();
  // True when both sides have proved, and everything is sent.
  bool done() const { return done_ && verdict_.ok() && sent_ == out_.size(); }
  // The peer; -1 until it has said who it is.
  int64_t peer() const { return peer_; }
  bool came() const { return came_; }
  std::chrono::steady_clock::time_point since() const { return since_; }
  Socket take() { return std::move(socket_); }

 private:
  Handshake(Socket socket, const HandshakeNames& names, int64_t peer, bool came);
  Status take_message();
  std::string proof_of(int64_t from, int64_t to, std::string_view nonce) const;
  Status check_proof(std::string_view proof) const;
  size_t wanted() const;

  Socket socket_;
  const HandshakeNames* names_;
  int64_t peer_;
  bool came_, connecting_;
  bool told_ = false, done_ = false;  // the peer has said who it is; it has said all
  Status verdict_;                    // of its proof
  Nonce nonce_;
  std::string in_, out_;
  size_t sent_ = 0;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace ostro::dist
