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

}  // namespace

Together::Together(serve::ServedModel model, double step_seconds, ChangeAsk change)
    : change_(std::move(change)), served_(counting(std::move(model)), kMostWaiting, step_seconds) {}

serve::ServedModel Together::counting(serve::ServedModel model) {
  model.runner = std::make_unique<CountingRunner>(std::move(model.runner), [this] { on_step(); });
  return model;
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
    serve::ParsedAsk parsed = serve::parse_completion(served_.model, fields.dump());
    REQUIRE_MESSAGE(std::holds_alternative<serve::Ask>(parsed), fields.dump());
    serve::Ask& ask = std::get<serve::Ask>(parsed);
    ask.metrics = served_.metrics;
    if (change_) change_(ask, waiting.size());
    one.job = {one.exchange, std::make_shared<const serve::Ask>(std::move(ask)), nullptr};
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
