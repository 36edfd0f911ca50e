#include "ostro/serve/model_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "ostro/http/prometheus_text.h"
#include "ostro/serve/json/reply_parts.h"
#include "ostro/serve/page/chat_page.h"
#include "ostro/serve/token_paths.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

using Models = std::vector<std::unique_ptr<ServedModel>>;

constexpr int kReaders = 2;

Json model_json(const ModelFacts& facts) {
  Json out = {{"id", facts.name},
              {"object", "model"},
              {"created", 0},
              {"owned_by", "ostro"},
              {"max_model_len", facts.context},
              {"state", facts.state},
              {"mp", facts.mp},
              {"forward", facts.forward},
              {"tokenizer", facts.tokenizer}};
  if (!facts.adapter.empty()) out["adapter"] = facts.adapter;
  return out;
}

bool is_for_engine(Action action) {
  return action == Action::kCompletion || action == Action::kChat || action == Action::kResponse ||
         action == Action::kEmbedding;
}

ParsedAsk parse_ask(Action action, const ServedModel& model, const Body& body) {
  if (action == Action::kCompletion) return parse_completion(model, body);
  if (action == Action::kEmbedding) return parse_embedding(model, body);
  return action == Action::kChat ? parse_chat(model, body) : parse_response(model, body);
}

http::Response of_tokens(Action action, const ServedModel& model, const Body& body) {
  if (action == Action::kTokenize) return tokenize(model, body);
  return action == Action::kDetokenize ? detokenize(model, body) : apply_template(model, body);
}

}  // namespace

ModelServer::ModelServer(Access access, const ServerLimits& limits)
    : limits_(limits),
      access_(std::move(access)),
      incoming_(limits.waiting, share_of(limits.waiting, limits.key_share)) {
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
  std::vector<std::shared_ptr<Serving>> over;
  {
    const std::lock_guard lock(serving_mutex_);
    over.swap(earlier_);
    over.push_back(std::move(serving_));
  }
  over.clear();
  if (server_ != nullptr) (void)server_->wait_until_answered(std::chrono::milliseconds(500));
  server_.reset();
}

ApiError ModelServer::not_ready() const {
  return {kUnavailable, state_ == State::kLoading ? "the model is being loaded" : "the server stops"};
}

Status ModelServer::serve(Models models, std::unique_ptr<ReceiptMaker> receipts) {
  receipts_ = std::move(receipts);
  RETURN_IF_ERROR(replace(std::move(models)));
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kReady);
  return {};
}

Status ModelServer::serve(std::unique_ptr<ServedModel> model, std::unique_ptr<ReceiptMaker> receipts) {
  Models one;
  one.push_back(std::move(model));
  return serve(std::move(one), std::move(receipts));
}

Status ModelServer::replace(std::unique_ptr<ServedModel> model) {
  Models one;
  one.push_back(std::move(model));
  return replace(std::move(one));
}

Status ModelServer::replace(Models models) {
  for (const auto& model : models) RETURN_IF_ERROR(model->runner->prepare());
  auto next = std::make_shared<Serving>();
  for (auto& model : models) {
    const auto sharing = std::find_if(next->engines.begin(), next->engines.end(), [&](const Engine& one) {
      return model->rows != nullptr && one.model->rows == model->rows;
    });
    auto thread = sharing != next->engines.end()
                      ? sharing->thread
                      : std::make_shared<EngineThread>(*model, *receipts_,
                                                       EngineLimits{.waiting = limits_.waiting,
                                                                    .step_seconds = limits_.step_seconds,
                                                                    .metrics = metrics_,
                                                                    .key_share = limits_.key_share,
                                                                    .times = limits_.times});
    next->engines.push_back({std::move(model), std::move(thread)});
  }
  const std::lock_guard lock(serving_mutex_);
  if (serving_ != nullptr) earlier_.push_back(std::move(serving_));
  serving_ = std::move(next);
  return {};
}

ModelServer::Serving::~Serving() {
  for (Engine& one : engines) one.thread.reset();
}

const ModelServer::Engine* ModelServer::Serving::find(const std::string& name) const {
  if (name.empty()) return &engines[0];
  for (const Engine& one : engines)
    if (one.model->facts.name == name) return &one;
  return nullptr;
}

ApiError ModelServer::Serving::unknown(const std::string& name) const {
  std::vector<std::string> names;
  for (const Engine& one : engines) names.push_back(fmt::format("\"{}\"", one.model->facts.name));
  return {
      kNotFound,
      fmt::format("the model \"{}\" is not served here; this server has {}", name, fmt::join(names, ", ")),
      "model", "model_not_found"};
}

void ModelServer::drop_earlier() {
  std::vector<std::shared_ptr<Serving>> over;  // they end outside of the lock
  const std::lock_guard lock(serving_mutex_);
  for (auto& one : earlier_)
    if (one->requests == 0) over.push_back(std::move(one));
  std::erase(earlier_, nullptr);
}

std::shared_ptr<ModelServer::Serving> ModelServer::serving() const {
  const std::lock_guard lock(serving_mutex_);
  return serving_;
}

std::pair<std::shared_ptr<ModelServer::Serving>, std::shared_ptr<void>> ModelServer::used() {
  const std::lock_guard lock(serving_mutex_);
  ++serving_->requests;
  return {serving_, std::shared_ptr<void>(nullptr, [one = serving_.get()](void*) { --one->requests; })};
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

void ModelServer::take(const std::shared_ptr<http::Exchange>& one) {
  const std::optional<Path> path = path_of(one->request().path);
  const std::shared_ptr<http::Exchange> exchange =
      counted(one, metrics_, path ? std::string(path->path) : "other");
  const http::Request& request = exchange->request();
  if (const auto refused = access_.refusal(request)) return exchange->answer(error_response(*refused));
  if (!path || !path->posts || request.method != "POST") return exchange->answer(at_once(request, path));
  if (request.body_too_large)
    return exchange->answer(error_response(
        {kTooLarge, fmt::format("the body has more than {} bytes, which is the most", limits_.body_bytes)}));
  {
    const std::lock_guard lock(mutex_);
    ++taken_;
  }
  const bool for_engine = is_for_engine(path->action);
  if (for_engine) metrics_->take();
  std::shared_ptr<void> held(nullptr, [this, for_engine](void*) {
    if (for_engine) metrics_->drop();
    const std::lock_guard lock(mutex_);
    if (--taken_ == 0) answered_.notify_all();
  });
  if (state_ != State::kReady) return exchange->answer(error_response(not_ready()));
  std::string owner = limits_.share_prefixes ? "" : access_.owner(request);
  const std::string key = access_.sharer(request);
  const Pushed pushed = incoming_.push(key, {exchange, held, path->action, std::move(owner), key},
                                       [](const Incoming& waiting) { return waiting.exchange->is_gone(); });
  if (pushed != Pushed::kTaken)
    exchange->answer(error_response(may_not_wait(pushed, limits_.waiting, limits_.key_share)));
}

// What needs no thread of its own: all that takes GET, and every method that a path does not take.
http::Response ModelServer::at_once(const http::Request& request, const std::optional<Path>& path) {
  if (!path) return error_response({kNotFound, paths_text()});
  const char* allowed = path->posts ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
  if (request.method == "OPTIONS") return {kNoContent, "text/plain", "", {{"Allow", allowed}}};
  if (path->posts || (request.method != "GET" && request.method != "HEAD")) {
    http::Response out = error_response(
        {kNotAllowed, fmt::format("{} takes {}", path->path, path->posts ? "POST" : "GET and HEAD")});
    out.headers.emplace_back("Allow", allowed);
    return out;
  }
  const std::shared_ptr<Serving> now = serving();
  const bool ready = state_ == State::kReady && now != nullptr;  // not even where the server just ends
  switch (path->action) {
    case Action::kPage: return chat_page();
    case Action::kHealth: return json_response({{"status", "ok"}});
    case Action::kMetrics:
      return {200, http::kPrometheusType,
              ready ? metrics_text(metrics_->counts(), now->facts().name, now->facts().state)
                    : metrics_text(metrics_->counts(), "", "")};
    default: break;
  }
  if (!ready) return error_response(not_ready());
  if (path->action == Action::kReady) return json_response({{"status", "ready"}});
  if (path->action == Action::kTokenizerInfo) return tokenizer_info(*now->engines[0].model);
  if (path->action == Action::kModels) {
    Json list = Json::array();
    for (const Engine& one : now->engines) list.push_back(model_json(one.model->facts));
    return json_response({{"object", "list"}, {"data", std::move(list)}});
  }
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  const Engine* one = now->find(name);
  return one != nullptr ? json_response(model_json(one->model->facts)) : error_response(now->unknown(name));
}

void ModelServer::read_requests() {
  while (const auto one = incoming_.pop()) {
    if (one->exchange->is_gone()) continue;
    if (Clock::now() - one->arrived > limits_.times.waiting) {
      one->exchange->answer(error_response(waited_too_long(limits_.times.waiting)));
      continue;
    }
    const Body body(one->exchange->request().body);
    const auto [now, use] = used();
    const std::string name = now->engines.size() > 1 ? body.model() : "";
    const Engine* engine = now->find(name);
    if (engine == nullptr) {
      one->exchange->answer(error_response(now->unknown(name)));
      continue;
    }
    if (!is_for_engine(one->action)) {
      one->exchange->answer(of_tokens(one->action, *engine->model, body));
      continue;
    }
    ParsedAsk parsed = parse_ask(one->action, *engine->model, body);
    if (const auto* error = std::get_if<ApiError>(&parsed)) {
      one->exchange->answer(error_response(*error));
      continue;
    }
    Ask& asked = std::get<Ask>(parsed);
    asked.metrics = metrics_;
    asked.arrived = one->arrived;
    asked.owner = one->owner;
    auto ask = std::make_shared<const Ask>(std::move(asked));
    // The request holds its place among those that are taken, and its model.
    auto held = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(one->held, use);
    if (const auto refused = engine->thread->push(
            {one->exchange, std::move(ask), std::move(held), one->key, engine->model.get()}))
      one->exchange->answer(error_response(*refused));
  }
}

}  // namespace ostro::serve
