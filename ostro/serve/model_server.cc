#include "ostro/serve/model_server.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReaders = 2;

http::Response json(const Json& value) { return {200, "application/json", value.dump() + "\n"}; }

bool is_post_path(const std::string& path) {
  return path == "/v1/completions" || path == "/v1/chat/completions" || path == "/tokenize" ||
         path == "/detokenize";
}
bool is_get_path(const std::string& path) {
  return path == "/health" || path == "/ready" || path == "/v1/models";
}

Json models_json(const ServedModel& model) {
  const ModelFacts& facts = model.facts;
  return {{"object", "list"},
          {"data",
           {{{"id", facts.name},
             {"object", "model"},
             {"created", 0},
             {"owned_by", "ostro"},
             {"max_model_len", facts.context},
             {"state", facts.state},
             {"forward", facts.forward},
             {"tokenizer", facts.tokenizer}}}}};
}

}  // namespace

ModelServer::ModelServer(Access access, const ServerLimits& limits)
    : limits_(limits), access_(std::move(access)), incoming_(limits.waiting) {
  for (int i = 0; i < kReaders; ++i) readers_.emplace_back([this] { read_requests(); });
}

Result<std::unique_ptr<ModelServer>> ModelServer::start(const http::Address& address,
                                                        std::optional<ApiKeys> keys,
                                                        const ServerLimits& limits) {
  ASSIGN_OR_RETURN(Access access, Access::create(address, std::move(keys)));
  std::unique_ptr<ModelServer> out(new ModelServer(std::move(access), limits));
  http::Limits of_http;
  of_http.connections = of_http.connections_of_address = limits.connections;
  of_http.body = limits.body_bytes;
  ASSIGN_OR_RETURN(
      out->server_,
      http::Server::start_service(
          address, [self = out.get()](const std::shared_ptr<http::Exchange>& one) { self->take(one); },
          of_http));
  return out;
}

// The threads below HTTP end first. What they answered last gets a moment to arrive.
ModelServer::~ModelServer() {
  state_ = State::kDraining;
  for (const Incoming& one : incoming_.close()) one.exchange->answer(error_response(not_ready()));
  for (std::thread& reader : readers_) reader.join();
  engine_.reset();
  if (server_ != nullptr) (void)server_->wait_until_answered(std::chrono::milliseconds(500));
  server_.reset();
}

ApiError ModelServer::not_ready() const {
  return {kUnavailable, state_ == State::kLoading ? "the model is being loaded" : "the server stops"};
}

Status ModelServer::serve(std::unique_ptr<ServedModel> model, std::unique_ptr<ReceiptMaker> receipts) {
  RETURN_IF_ERROR(model->runner->prepare());
  model_ = std::move(model);
  receipts_ = std::move(receipts);
  engine_ = std::make_unique<EngineThread>(*model_, *receipts_, limits_.waiting);
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);
  return {};
}

bool ModelServer::drain(std::chrono::milliseconds limit) {
  const auto due = std::chrono::steady_clock::now() + limit;
  state_ = State::kDraining;
  {
    std::unique_lock lock(mutex_);
    if (!answered_.wait_until(lock, due, [this] { return taken_ == 0; })) return false;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - std::chrono::steady_clock::now());
  return server_->wait_until_answered(std::max(left, std::chrono::milliseconds(0)));
}

void ModelServer::take(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  if (const auto refused = access_.refusal(request)) return exchange->answer(error_response(*refused));
  if (request.method != "POST" || !is_post_path(request.path)) return exchange->answer(at_once(request));
  if (request.body_too_large)
    return exchange->answer(error_response(
        {kTooLarge, fmt::format("the body has more than {} bytes, which is the most", limits_.body_bytes)}));
  {
    const std::lock_guard lock(mutex_);
    ++taken_;
  }
  std::shared_ptr<void> held(nullptr, [this](void*) {
    const std::lock_guard lock(mutex_);
    if (--taken_ == 0) answered_.notify_all();
  });
  if (state_ != State::kReady) return exchange->answer(error_response(not_ready()));
  if (!incoming_.push({exchange, held}, [](const Incoming& one) { return one.exchange->is_gone(); }))
    exchange->answer(error_response({kTooMany, fmt::format("{} requests wait already", limits_.waiting)}));
}

http::Response ModelServer::at_once(const http::Request& request) {
  const bool posts = is_post_path(request.path);
  if (posts || (is_get_path(request.path) && request.method == "POST")) {
    http::Response out = error_response(
        {kNotAllowed, fmt::format("{} takes {}", request.path, posts ? "POST" : "GET and HEAD")});
    out.headers.emplace_back("Allow", posts ? "POST" : "GET, HEAD");
    return out;
  }
  if (request.path == "/health") return json({{"status", "ok"}});
  if (!is_get_path(request.path))
    return error_response({kNotFound,
                           "this server has /v1/completions, /v1/chat/completions, /v1/models, /tokenize, "
                           "/detokenize, /health and /ready"});
  if (state_ != State::kReady) return error_response(not_ready());
  return request.path == "/ready" ? json({{"status", "ready"}}) : json(models_json(*model_));
}

void ModelServer::read_requests() {
  while (const auto one = incoming_.pop()) {
    if (one->exchange->is_gone()) continue;
    const http::Request& request = one->exchange->request();
    if (request.path == "/tokenize" || request.path == "/detokenize") {
      one->exchange->answer(request.path == "/tokenize" ? tokenize(*model_, request.body)
                                                        : detokenize(*model_, request.body));
      continue;
    }
    ParsedAsk parsed = request.path == "/v1/completions" ? parse_completion(*model_, request.body)
                                                         : parse_chat(*model_, request.body);
    if (const auto* error = std::get_if<ApiError>(&parsed)) {
      one->exchange->answer(error_response(*error));
      continue;
    }
    auto ask = std::make_shared<const Ask>(std::move(std::get<Ask>(parsed)));
    if (!engine_->push({one->exchange, std::move(ask), one->held}))
      one->exchange->answer(
          error_response({kTooMany, fmt::format("{} requests wait already", limits_.waiting)}));
  }
}

}  // namespace ostro::serve
