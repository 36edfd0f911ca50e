// Exchange: one request and its answer, which may be given later, by another thread: whole, or in pieces.
//
// Either answer() is called once, or begin(), any number of send() and end(). A client that has left, and a
// server that ends, make the calls do nothing. Thread-safe. A test can have one of its own.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "ostro/http/message.h"

namespace ostro::http {

class Exchange {
 public:
  explicit Exchange(Request request) : request_(std::move(request)) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  virtual const Request& request() const { return request_; }

  virtual void answer(Response response) = 0;
  // The head of an answer that comes in pieces; its body is empty.
  virtual void begin(Response head) = 0;
  virtual void send(std::string_view bytes) = 0;
  virtual void end() = 0;
  // So much waits for the client that no more should be sent for now. A client for which this stays true
  // for Limits::unread_time is dropped: is_gone() is true from then on.
  virtual bool is_full() { return false; }

  // Whether nothing that is sent can arrive any more: the client has closed its connection or its side of it,
  // or the server ends. It is known within milliseconds, also while nothing is sent.
  virtual bool is_gone() const = 0;

 protected:
  Request request_;
};

// Takes a request. It returns soon, since it runs on the thread of all connections; the answer may come
// later.
using Service = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace ostro::http
