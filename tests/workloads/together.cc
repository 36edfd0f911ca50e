#include "together.h"

#include <utility>

namespace ostro::workloads {
namespace {

constexpr size_t kMostWaiting = 200;

class CountingRunner final : public serve::ForwardingRunner {
 public:
  CountingRunner(std::unique_ptr<infer::RowRunner> inner, std::function<void()> before_step)
      : ForwardingRunner(std::move(inner)), before_step_(std::move(before_step)) {}

  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    before_step_();
    return ForwardingRunner::step(chunks);
  }

 private:
  std::function<void()> before_step_;
};

std::vector<serve::ServedModel> list_of(serve::ServedModel model) {
  std::vector<serve::ServedModel> out;
  out.push_back(std::move(model));
  return out;
}

}  // namespace

Together::Together(std::vector<serve::ServedModel> models, double step_seconds, ChangeAsk change)
    : change_(std::move(change)),
      models_(counting(std::move(models))),
      served_(std::move(models_[0]), kMostWaiting, step_seconds) {}

Together::Together(serve::ServedModel model, double step_seconds, ChangeAsk change)
    : Together(list_of(std::move(model)), step_seconds, std::move(change)) {}

std::vector<serve::ServedModel> Together::counting(std::vector<serve::ServedModel> models) {
  models[0].runner = std::make_unique<CountingRunner>(std::move(models[0].runner), [this] { on_step(); });
  return models;
}

void Together::on_step() {
  const std::lock_guard lock(mutex_);
  ++steps_;
  size_t due = pushed_;
  while (due < waiting_.size() && waiting_[due].step <= steps_) ++due;
  push_until(due);
}

void Together::push_until(size_t end) {
  for (; pushed_ < end; ++pushed_) {
    const auto refused = served_.engine.push(std::move(waiting_[pushed_].job));
    OSTRO_CHECK(!refused, "more than {} requests wait", kMostWaiting);
  }
}

void Together::begin(const std::vector<Arrival>& arrivals) {
  std::vector<Waiting> waiting;
  for (const Arrival& arrival : arrivals) {
    Waiting one;
    one.exchange = std::make_shared<serve::KeptExchange>();
    one.step = arrival.step;
    one.stays = arrival.leaves_after < 0;
    Json fields = arrival.ask;
    if (!one.stays) {
      one.exchange->leave_after = arrival.leaves_after;
      one.exchange->gone = arrival.leaves_after == 0;
      fields["stream"] = true;
      fields.erase("echo");
    }
    // The one model of a Together is that of all arrivals.
    const auto place = static_cast<size_t>(models_.size() > 1 ? arrival.adapter : 0);
    serve::ServedModel& model = place == 0 ? served_.model : models_[place];
    serve::ParsedAsk parsed = serve::parse_completion(model, fields.dump());
    REQUIRE_MESSAGE(std::holds_alternative<serve::Ask>(parsed), fields.dump());
    serve::Ask& ask = std::get<serve::Ask>(parsed);
    ask.metrics = served_.metrics;
    if (change_) change_(ask, waiting.size());
    one.job = {one.exchange, std::make_shared<const serve::Ask>(std::move(ask)), nullptr, "", &model};
    waiting.push_back(std::move(one));
  }
  const std::lock_guard lock(mutex_);
  steps_ = 0;
  pushed_ = 0;
  waiting_ = std::move(waiting);
  size_t first = 0;
  while (first < waiting_.size() && waiting_[first].step == 0) ++first;
  push_until(first);
}

std::vector<Json> Together::finish() {
  std::vector<Json> out;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    {
      const std::lock_guard lock(mutex_);
      push_until(std::max(pushed_, i + 1));
    }
    if (waiting_[i].stays) {
      waiting_[i].exchange->wait();
      CHECK(waiting_[i].exchange->status == 200);
      out.push_back(Json::parse(waiting_[i].exchange->body)["choices"]);
    } else {
      out.emplace_back();
    }
  }
  return out;
}

std::vector<Json> Together::answers(const std::vector<Arrival>& arrivals) {
  begin(arrivals);
  return finish();
}

}  // namespace ostro::workloads
