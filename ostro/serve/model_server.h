// ModelServer: answers OpenAI's API for one model over HTTP (docs/guide/serve.md).
//
// Threads: HTTP's own, two that read requests and make tokens of them, one that runs the model. It can be
// asked before the model is there: /health then says ok, /ready does not.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/http/gate.h"
#include "ostro/http/server.h"
#include "ostro/serve/engine_thread.h"

namespace ostro::serve {

struct ServerLimits {
  size_t waiting = 64;                  // requests that wait for the model at most
  size_t body_bytes = size_t{8} << 20;  // of a request
  unsigned connections = 512;
};

class ModelServer {
 public:
  // Listens. Errors: the address is in use, or other machines could reach it.
  static Result<std::unique_ptr<ModelServer>> start(const http::Address& address, const ServerLimits& limits);
  ~ModelServer();

  int port() const { return server_->port(); }
  // Builds the model's programs; from then on requests are answered. Once.
  Status serve(std::unique_ptr<ServedModel> model, std::unique_ptr<ReceiptMaker> receipts);
  // Takes no more requests and waits until those that it took are answered, at most so long. False: some are
  // not.
  bool drain(std::chrono::milliseconds limit);

 private:
  enum class State { kLoading, kReady, kDraining };

  explicit ModelServer(const ServerLimits& limits);
  void take(const std::shared_ptr<http::Exchange>& exchange);  // of HTTP's thread
  http::Response at_once(const http::Request& request);
  void read_requests();  // of a thread
  ApiError not_ready() const;

  const ServerLimits limits_;
  const http::Gate gate_;
  std::atomic<State> state_ = State::kLoading;
  std::unique_ptr<ServedModel> model_;
  std::unique_ptr<ReceiptMaker> receipts_;
  std::unique_ptr<EngineThread> engine_;
  // Requests that are taken and not answered.
  std::mutex mutex_;
  std::condition_variable answered_;
  int64_t taken_ = 0;

  struct Incoming {
    std::shared_ptr<http::Exchange> exchange;
    std::shared_ptr<void> held;  // counts in taken_
  };
  BoundedQueue<Incoming> incoming_;
  std::vector<std::thread> readers_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace ostro::serve
