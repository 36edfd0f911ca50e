// Channel: a connection as a stream of messages. It never blocks: it reads the bytes that have arrived,
// writes what the system takes, and keeps the rest in buffers with bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

// Owns the socket. Not thread-safe.
class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.fd(); }

  // Reads the bytes that have arrived: at most 256 KiB, so that one sender cannot occupy the thread, and no
  // more than fits into a message of `most` bytes. Errors: kIo when the other side has closed or the
  // connection broke; messages that came before can still be read.
  Status fill(size_t most);
  // The next whole message, valid until the next call; nothing when it is not complete yet. Errors: kCorrupt
  // when it is empty or longer than `most` bytes, even if those have not arrived.
  Result<std::optional<std::string_view>> next(size_t most);
  // Appends a message to the output. Returns false when the other side is too slow: 8 MiB wait already.
  bool push(std::string_view message);
  // Writes what the system takes now. Errors: kIo.
  Status flush();
  bool wants_to_write() const { return sent_ < out_.size(); }
  // Returns whether any byte has come since the last call.
  bool heard();
  // Returns how many bytes were read and written since the last call.
  int64_t take_moved();
  // Shuts down the writing half: the other side reads the end of the stream.
  void finish();

 private:
  Socket socket_;
  std::string in_;
  size_t used_ = 0;  // bytes of in_ that next() has given
  std::string out_;
  size_t sent_ = 0;  // bytes of out_ that are written
  bool heard_ = false;
  int64_t moved_ = 0;
};

}  // namespace ostro::cluster
