// ModelServer: answers OpenAI's API for a model, and for the model with adapters, over HTTP
// (docs/guide/serve.md).
//
// Threads: those of HTTP, two that read requests and make tokens of them, and for each model one that runs
// it; models that share their rows have the same one.
// Requests are accepted before the model is there: /health then says ok, and requests that need the model are
// answered with 503. Call start, serve, drain and the destructor from one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ostro/http/server.h"
#include "ostro/serve/engine_thread.h"
#include "ostro/serve/gate/access.h"
#include "ostro/serve/gate/paths.h"

namespace ostro::serve {

// The most that the server takes at a time. What goes beyond it is refused: 429 for requests, 413 for bodies.
struct ServerLimits {
  size_t waiting = 64;                  // requests that wait for the model
  double step_seconds = 0.05;           // of the model, while it reads prompts (EngineLimits)
  size_t body_bytes = size_t{8} << 20;  // bytes of the body of a request
  unsigned connections = 512;
  bool share_prefixes = false;  // also between keys: rows of beginnings that prompts have in common
  double key_share = 75;  // percent of what may wait and of the answers that run, for one of several keys
  TimeLimits times = {};  // of requests for the model
};

class ModelServer {
 public:
  // Begins to listen. `keys`: of these a request has to bring one; nothing: none. Errors: the address is in
  // use; kInvalidArgument when other machines could reach it and there are no keys.
  static Result<std::unique_ptr<ModelServer>> start(const http::Address& address, std::optional<ApiKeys> keys,
                                                    const ServerLimits& limits);
  ~ModelServer();

  int port() const { return server_->port(); }
  // Builds the model's programs; from then on requests are answered. Call it once. Errors: those of the
  // runner's prepare(); requests are then still answered with 503.
  // The first model is that of requests that name none.
  Status serve(std::vector<std::unique_ptr<ServedModel>> models, std::unique_ptr<ReceiptMaker> receipts);
  Status serve(std::unique_ptr<ServedModel> model, std::unique_ptr<ReceiptMaker> receipts);
  // Serves other models from now on. A request that was read before stays with the one it has, which is
  // kept as long. Call it after serve(). Errors: those of the runner's prepare().
  Status replace(std::vector<std::unique_ptr<ServedModel>> models);
  Status replace(std::unique_ptr<ServedModel> model);
  // Frees models that no request has any more. Called now and then.
  void drop_earlier();
  // Takes no more requests, and waits until those that were taken are answered, at most for `limit`. Returns
  // false when some are not.
  bool drain(std::chrono::milliseconds limit);

 private:
  enum class State { kLoading, kReady, kDraining };

  struct Engine {
    std::unique_ptr<ServedModel> model;
    std::shared_ptr<EngineThread> thread;  // that runs it, and all models with the same rows
  };
  // What is served together, and the requests that have some of it.
  struct Serving {
    std::vector<Engine> engines;
    std::atomic<int64_t> requests = 0;

    ~Serving();  // threads end before any model
    const ModelFacts& facts() const { return engines[0].model->facts; }
    // The one of this name; of none: the first. Null: there is no such model.
    const Engine* find(const std::string& name) const;
    ApiError unknown(const std::string& name) const;
  };

  ModelServer(Access access, const ServerLimits& limits);
  void take(const std::shared_ptr<http::Exchange>& exchange);  // called by the threads of HTTP
  // The answer to a request that needs no model.
  http::Response at_once(const http::Request& request, const std::optional<Path>& path);
  void read_requests();  // the body of the threads in readers_
  std::shared_ptr<Serving> serving() const;
  // The same, and what keeps it from being dropped.
  std::pair<std::shared_ptr<Serving>, std::shared_ptr<void>> used();
  ApiError not_ready() const;

  const ServerLimits limits_;
  Access access_;  // of HTTP's thread
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  std::atomic<State> state_ = State::kLoading;
  std::unique_ptr<ReceiptMaker> receipts_;
  mutable std::mutex serving_mutex_;
  std::shared_ptr<Serving> serving_;
  std::vector<std::shared_ptr<Serving>> earlier_;  // some that requests may still have
  // taken_, guarded by mutex_: the number of requests that are taken and not answered.
  std::mutex mutex_;
  std::condition_variable answered_;
  int64_t taken_ = 0;

  struct Incoming {
    std::shared_ptr<http::Exchange> exchange;
    std::shared_ptr<void> held;  // counts in taken_
    Action action;
    std::string owner;  // of its key, whose kept beginnings it shares
    std::string key;    // whose share it takes
    std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
  };
  KeyQueue<Incoming> incoming_;
  std::vector<std::thread> readers_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace ostro::serve
