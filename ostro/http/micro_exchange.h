// MicroExchange: an Exchange on a connection of libmicrohttpd. Private to this room.
//
// While there is nothing to send, the connection is suspended: libmicrohttpd's thread leaves it alone until
// it is resumed here. Every call below that names a connection comes from that thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ostro/http/exchange.h"
#include "ostro/http/server.h"

struct MHD_Connection;

namespace ostro::http {

class MicroExchange final : public Exchange, public std::enable_shared_from_this<MicroExchange> {
 public:
  // `on_all` is called when all of the answer is there, with the bytes that the client has to read yet; by
  // any thread, while the connection is open.
  MicroExchange(Request request, MHD_Connection* connection, const Limits& limits,
                std::function<void(size_t bytes)> on_all)
      : Exchange(std::move(request)), connection_(connection), limits_(limits), on_all_(std::move(on_all)) {}

  void answer(Response response) override;
  void begin(Response head) override;
  void send(std::string_view bytes) override;
  void end() override;
  bool is_full() override;
  bool is_gone() const override;

  // A piece of the request's body.
  void take_body(std::string_view bytes);
  // Whether the service has it: true from the second call on.
  bool is_dispatched() { return std::exchange(dispatched_, true); }
  // Queues the answer, or suspends the connection. False: the connection is to be closed.
  bool go_on(MHD_Connection* connection);
  // The client has left, or the server ends.
  void leave();
  // The connection is no more.
  void closed();
  // The next bytes of a stream, at most `most`. 0: none yet; -1: the end; -2: the client has left.
  int64_t read(char* to, size_t most);

 private:
  using Clock = std::chrono::steady_clock;

  void resume();
  size_t unread() const { return pending_.size() - sent_; }
  // The client gets no more; what waits for it is freed.
  void drop();

  mutable std::mutex mutex_;
  MHD_Connection* connection_;  // null: it is closed
  const Limits limits_;
  const std::function<void(size_t)> on_all_;
  std::optional<Response> response_;
  bool dispatched_ = false, suspended_ = false, gone_ = false, streams_ = false, ended_ = false;
  std::string pending_;
  size_t sent_ = 0;                              // of pending_
  std::optional<Clock::time_point> full_since_;  // since when more than Limits::unread waits
};

}  // namespace ostro::http
