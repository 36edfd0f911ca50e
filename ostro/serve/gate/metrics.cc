#include "ostro/serve/gate/metrics.h"

#include <atomic>

#include "ostro/http/prometheus_text.h"

namespace ostro::serve {
namespace {

constexpr int kClientLeft = 499;  // the number that nginx gives it

class CountedExchange final : public http::Exchange {
 public:
  CountedExchange(std::shared_ptr<http::Exchange> inner, std::shared_ptr<Metrics> metrics, std::string path)
      : Exchange({}), inner_(std::move(inner)), metrics_(std::move(metrics)), path_(std::move(path)) {}
  ~CountedExchange() override { count(kClientLeft); }

  const http::Request& request() const override { return inner_->request(); }
  void answer(http::Response response) override {
    count(is_gone() ? kClientLeft : response.status);
    inner_->answer(std::move(response));
  }
  void begin(http::Response head) override {
    count(head.status);
    inner_->begin(std::move(head));
  }
  void send(std::string_view bytes) override { inner_->send(bytes); }
  void end() override { inner_->end(); }
  bool is_full() override { return inner_->is_full(); }
  bool is_gone() const override { return inner_->is_gone(); }

 private:
  void count(int status) {
    if (!counted_.exchange(true)) metrics_->answered(path_, status);
  }

  const std::shared_ptr<http::Exchange> inner_;
  const std::shared_ptr<Metrics> metrics_;
  const std::string path_;
  std::atomic<bool> counted_ = false;
};

void add_histogram(http::PrometheusText& out, const char* name, const char* help, const Histogram& of) {
  out.histogram(name, help, Histogram::kLimits, of.at_most, of.count, of.sum);
}

double as_number(int64_t count) { return static_cast<double>(count); }

}  // namespace

void Histogram::add(double value) {
  ++count;
  sum += value;
  for (size_t i = 0; i < kLimits.size(); ++i) at_most[i] += value <= kLimits[i] ? 1 : 0;
}

void Metrics::answered(const std::string& path, int status) {
  const std::lock_guard lock(mutex_);
  ++counts_.answers[{path, status}];
}

void Metrics::take() {
  const std::lock_guard lock(mutex_);
  ++counts_.taken;
}

void Metrics::drop() {
  const std::lock_guard lock(mutex_);
  --counts_.taken;
}

void Metrics::begin(int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  ++counts_.running;
  counts_.prompt_tokens += prompt_tokens;
}

void Metrics::token(double seconds_since_arrival, bool is_first) {
  const std::lock_guard lock(mutex_);
  ++counts_.made_tokens;
  if (is_first) counts_.first_token.add(seconds_since_arrival);
}

void Metrics::reuse(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  counts_.reused_tokens += tokens;
}

void Metrics::preempt() {
  const std::lock_guard lock(mutex_);
  ++counts_.preempted;
}

void Metrics::cache(const void* engine, const infer::CacheFacts& facts) {
  const std::lock_guard lock(mutex_);
  caches_[engine] = facts;
  if (facts.pages == 0) caches_.erase(engine);
  counts_.cache = {};
  for (const auto& [of, one] : caches_) {
    counts_.cache.pages += one.pages;
    counts_.cache.bytes += one.bytes;
    counts_.cache.held += one.held;
    counts_.cache.kept += one.kept;
  }
}

void Metrics::end(double seconds_since_arrival) {
  const std::lock_guard lock(mutex_);
  --counts_.running;
  counts_.whole.add(seconds_since_arrival);
}

Counts Metrics::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string metrics_text(const Counts& counts, const std::string& model, const std::string& state) {
  http::PrometheusText out;
  if (!model.empty()) {
    out.family("ostro_model_info", "gauge", "What is served; the value is always 1.");
    out.sample(1, {{"model", model}, {"state", state}});
  }
  out.family("ostro_requests_total", "counter", "Requests by path and status; 499: the client left before.");
  for (const auto& [key, value] : counts.answers)
    out.sample(as_number(value), {{"path", key.first}, {"status", std::to_string(key.second)}});
  out.counter("ostro_prompt_tokens_total", "Tokens of prompts.", as_number(counts.prompt_tokens));
  out.counter("ostro_generated_tokens_total", "Tokens of answers.", as_number(counts.made_tokens));
  out.counter("ostro_reused_tokens_total", "Tokens of texts whose rows were kept from earlier ones.",
              as_number(counts.reused_tokens));
  out.counter("ostro_preemptions_total", "Answers that gave up their memory and were run again.",
              as_number(counts.preempted));
  out.family("ostro_cache_pages", "gauge", "Pages of 128 positions: of running answers, kept, all.");
  out.sample(as_number(counts.cache.held), {{"state", "held"}});
  out.sample(as_number(counts.cache.kept), {{"state", "kept"}});
  out.sample(as_number(counts.cache.pages), {{"state", "all"}});
  out.gauge("ostro_cache_bytes", "Memory of all pages.", as_number(counts.cache.bytes));
  out.gauge("ostro_requests_running", "Requests for text that the model works on.",
            as_number(counts.running));
  out.gauge("ostro_requests_waiting", "Requests for text that wait for the model.",
            as_number(counts.taken - counts.running));
  add_histogram(out, "ostro_time_to_first_token_seconds", "From a request's arrival to its first token.",
                counts.first_token);
  add_histogram(out, "ostro_request_seconds", "From the arrival of a request for text to its end.",
                counts.whole);
  return out.text();
}

std::shared_ptr<http::Exchange> counted(std::shared_ptr<http::Exchange> exchange,
                                        std::shared_ptr<Metrics> metrics, std::string path) {
  return std::make_shared<CountedExchange>(std::move(exchange), std::move(metrics), std::move(path));
}

}  // namespace ostro::serve
