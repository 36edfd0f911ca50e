// Server: answers requests at one address with what a function returns, at once or later, whole or in pieces.
//
// One thread of its own runs the function, for one request at a time. A connection carries one request.
// Clients that are slow or many cost a bounded amount of memory and cannot hold up others: a request's header
// and body have to be there before a deadline, however their bytes come; bodies have a size; connections are
// limited, all in all and for an address; those that have not brought their request fill at most half of
// the smaller limit, and the oldest of them goes where one more comes. A client that reads its answer too
// slowly is dropped, and with it what waits for it.
#pragma once

#include <chrono>
#include <memory>

#include "ostro/base/error.h"
#include "ostro/http/address.h"
#include "ostro/http/exchange.h"
#include "ostro/http/message.h"

namespace ostro::http {

struct Limits {
  std::chrono::milliseconds header{10'000};     // from the connection to the end of the header
  std::chrono::milliseconds body_time{60'000};  // from there to the end of the body
  std::chrono::seconds idle{30};                // without a byte either way, but for waiting for the answer
  unsigned connections = 64, connections_of_address = 32;
  // For reading a whole answer, and besides a second for each `answer_rate` bytes of it.
  std::chrono::milliseconds answer_time{30'000};
  size_t answer_rate = size_t{16} << 10;
  // Of an answer in pieces: bytes that may wait, and how long there may be more (Exchange::is_full).
  size_t unread = size_t{1} << 20;
  std::chrono::milliseconds unread_time{30'000};
  size_t memory = size_t{32} << 10;  // of a connection, for its header
  size_t body = 0;  // bytes of a request's body; 0: the server answers GET and HEAD, and 405 to the rest
};

class Server {
 public:
  // Listens at `address`. `handler` must not throw. Errors: the address is in use, or not of this machine.
  static Result<std::unique_ptr<Server>> start(const Address& address, Handler handler,
                                               const Limits& limits = {});
  // The same for answers that come later. `service` must not throw; exchanges may outlive the server.
  static Result<std::unique_ptr<Server>> start_service(const Address& address, Service service,
                                                       const Limits& limits);
  virtual ~Server() = default;  // ends all connections

  // The port, also where the system chose it; 0 of a Unix socket.
  virtual int port() const = 0;
  // Waits until every request that came has its whole answer, at most so long. False: some have not.
  virtual bool wait_until_answered(std::chrono::milliseconds limit) = 0;
};

}  // namespace ostro::http
