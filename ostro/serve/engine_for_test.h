// KeptExchange, Served: requests through an engine's thread of their own, for tests.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/engine_thread.h"
#include "ostro/serve/gate/metrics.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

// Keeps what it gets.
class KeptExchange final : public http::Exchange {
 public:
  KeptExchange() : Exchange({}) {}
  void answer(http::Response response) override {
    if (at_end) at_end();
    status = response.status;
    body = response.body;
    over_.set_value();
  }
  void begin(http::Response head) override { status = head.status; }
  void send(std::string_view bytes) override {
    body += bytes;
    if (++pieces == leave_after) gone = true;
  }
  void end() override { over_.set_value(); }
  bool is_gone() const override { return gone; }
  bool is_full() override {
    looked = looked + 1;
    return full && pieces > 0;
  }
  void wait() { over_.get_future().wait(); }

  int status = 0, pieces = 0, leave_after = -1;
  std::string body;
  std::atomic<bool> gone = false, full = false;
  std::atomic<int64_t> looked = 0;
  std::function<void()> at_end = {};  // called by the engine's thread before an answer that comes whole

 private:
  std::promise<void> over_;
};

// No machine is so slow.
constexpr TimeLimits kDays{.waiting = std::chrono::hours(1000), .running = std::chrono::hours(1000)};

struct Served {
  explicit Served(ServedModel served = test_model(), size_t waiting = 4, double step_seconds = 0.05)
      : Served(std::move(served),
               EngineLimits{.waiting = waiting, .step_seconds = step_seconds, .times = kDays}) {}
  Served(ServedModel served, EngineLimits limited) : model(std::move(served)), limits(std::move(limited)) {}

  ServedModel model;
  EngineLimits limits;
  io::MemoryFileSystem fs;
  std::unique_ptr<ReceiptMaker> receipts = ReceiptMaker::open(fs, "", {}).value();
  EngineThread engine{model, *receipts, limits};

  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();

  std::shared_ptr<KeptExchange> ask(const std::string& body,
                                    std::shared_ptr<KeptExchange> exchange = std::make_shared<KeptExchange>(),
                                    const std::string& owner = "", const std::string& key = "") {
    ParsedAsk parsed = parse_completion(model, body);
    REQUIRE(std::holds_alternative<Ask>(parsed));
    Ask& asked = std::get<Ask>(parsed);
    asked.metrics = metrics;
    asked.owner = owner;
    asked.arrived = limits.now();
    CHECK_FALSE(engine.push({exchange, std::make_shared<const Ask>(std::move(asked)), nullptr, key}));
    return exchange;
  }
  Json whole(const std::string& body) {
    const auto exchange = ask(body);
    exchange->wait();
    CHECK(exchange->status == 200);
    return Json::parse(exchange->body);
  }
  std::vector<Json> events(const std::string& body) {
    const auto exchange = ask(body);
    exchange->wait();
    CHECK(exchange->body.ends_with("data: [DONE]\n\n"));
    std::vector<Json> out;
    std::istringstream lines(exchange->body);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("data: {")) out.push_back(Json::parse(line.substr(6)));
    return out;
  }
};

}  // namespace ostro::serve
