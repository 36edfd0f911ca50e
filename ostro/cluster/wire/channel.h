// Channel: a connection as a stream of messages, encrypted or not. It never blocks: it reads the bytes that
// have arrived, writes what the system takes, and keeps the rest in buffers with bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/cluster/wire/socket.h"
#include "ostro/tls/session.h"

namespace ostro::cluster {

// Owns the socket. Not thread-safe.
class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.fd(); }

  // Speaks TLS from now on; what was pushed before must have been written. fill() and flush() go on with its
  // handshake.
  void secure(tls::Certificates& certificates, tls::Side side);
  // What a proof says, so that it is valid on this connection alone; "" without TLS or before its handshake
  // is over.
  std::string binding() const;

  // Reads the bytes that have arrived: at most 256 KiB, so that one sender cannot occupy the thread, and no
  // more than fits into a message of `most` bytes. Errors: kIo when the other side has closed or the
  // connection broke; those of tls::Session. Messages that came before can still be read.
  Status fill(size_t most);
  // The next whole message, valid until the next call; nothing when it is not complete yet. Errors: kCorrupt
  // when it is empty or longer than `most` bytes, even if those have not arrived.
  Result<std::optional<std::string_view>> next(size_t most);
  // Appends a message to the output. Returns false when the other side is too slow: 8 MiB wait already.
  bool push(std::string_view message);
  // Writes what the system takes now. Errors: kIo.
  Status flush();
  bool wants_to_write() const;
  // Whether fill() has bytes that poll() does not know of.
  bool has_unread() const { return session_ && session_->has_unread(); }
  // Whether bytes have come that next() has not given.
  bool holds_bytes() const { return used_ < in_.size(); }
  // Returns whether any byte has come since the last call.
  bool heard();
  // Returns how many bytes were read and written since the last call.
  int64_t take_moved();
  // Shuts down the writing half: the other side reads the end of the stream.
  void finish();

 private:
  // Bytes that have come, 0 when none is there; an error when there will be none.
  Result<size_t> receive(std::span<char> bytes);
  Result<size_t> send(std::string_view bytes);
  // Whether bytes can be exchanged: without TLS, or after its handshake.
  Result<bool> ready();

  Socket socket_;
  std::unique_ptr<tls::Session> session_;  // ends before the socket
  std::string in_;
  size_t used_ = 0;  // bytes of in_ that next() has given
  std::string out_;
  size_t sent_ = 0;  // bytes of out_ that are written
  bool heard_ = false;
  int64_t moved_ = 0;
};

}  // namespace ostro::cluster
