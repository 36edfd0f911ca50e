// Session: TLS 1.3 on a connected socket that never blocks, between two processes of a job.
//
// All functions do what can be done without waiting; poll() on the socket says when there is more to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/tls/certificates.h"

namespace ostro::tls {

enum class Side { kConnects, kAccepts };

// What read() got. `end`: the other side has said that no byte follows, and all were read before.
struct Got {
  size_t bytes = 0;
  bool end = false;
};

// After an error nothing works any more. Not thread-safe.
class Session {
 public:
  // `fd` must stay open as long as this lives.
  Session(Certificates& certificates, int fd, Side side);
  ~Session();

  // Goes on with the handshake. Returns true when it is over: the other side has a certificate of this job.
  // For the side that connects that does not say whether the other one has accepted it; its first bytes do.
  // Errors: kInvalidArgument when the other side's certificate is not of this job, or it does not take this
  // one's; kCorrupt when it speaks no TLS 1.3; kIo when the connection ends.
  Result<bool> handshake();
  bool established() const;

  // Reads until `into` is full or nothing is there. Errors: kIo when the connection breaks or ends without
  // the other side's word; kCorrupt when a byte was changed on the way; kInvalidArgument as of handshake().
  Result<Got> read(std::span<char> into);
  // Encrypts and sends the first of these bytes, and returns how many. When it is not all of them, call it
  // again with the rest, which may have grown. Errors: kIo.
  Result<size_t> write(std::string_view bytes);
  // Whether to wait until the socket can be written: handshake() or write() was stopped by that.
  bool wants_to_write() const;
  // Whether read() has bytes that poll() does not know of.
  bool has_unread() const;
  // 32 bytes that only the two sides of this connection know, after the handshake. A proof over them is valid
  // on no other connection, so it cannot be passed on.
  std::string binding() const;
  // Says that no byte follows, and shuts down the writing half of the socket.
  void finish();
  // Encrypts with new keys after so many records, before a key of AES-GCM is worn out (RFC 8446, 5.5).
  void renew_keys_after(int64_t records);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace ostro::tls
