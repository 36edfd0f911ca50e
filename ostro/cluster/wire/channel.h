// A connection as a stream of messages. It never blocks: it reads what is there and writes what goes out, and
// keeps the rest in buffers with bounds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  int fd() const { return socket_.fd(); }

  // Reads what is there, at most 256 KiB, so that one sender cannot keep a thread for itself, and no more
  // than fits into a message of `most` bytes. Errors: kIo when the other side has closed or the connection
  // broke; what came before can still be read.
  Status fill(size_t most);
  // The next whole message, good until the next call; none when it is not there yet. Errors: kCorrupt when it
  // is empty or longer than `most` bytes, whether or not those have come.
  Result<std::optional<std::string_view>> next(size_t most);
  // Appends a message to what goes out. False when the other side is too slow: 8 MiB wait already.
  bool push(std::string_view message);
  // Writes what the system takes now. Errors: kIo.
  Status flush();
  bool wants_to_write() const { return sent_ < out_.size(); }
  // Whether any byte has come since the last call.
  bool heard();
  // Says to the other side that nothing more will come.
  void finish();

 private:
  Socket socket_;
  std::string in_;
  size_t used_ = 0;  // bytes of in_ that next() has given
  std::string out_;
  size_t sent_ = 0;  // bytes of out_ that are written
  bool heard_ = false;
};

}  // namespace ostro::cluster
