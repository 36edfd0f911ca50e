#include "ostro/serve/gate/metrics.h"

#include <fmt/format.h>

#include <atomic>

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

// A label's value: backslash, quote and line feed are escaped.
std::string label(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string head(const char* name, const char* type, const char* help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

std::string one(const char* name, const char* type, const char* help, int64_t value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

std::string histogram(const char* name, const char* help, const Histogram& of) {
  std::string out = head(name, "histogram", help);
  for (size_t i = 0; i < of.at_most.size(); ++i)
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, Histogram::kLimits[i], of.at_most[i]);
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, of.count, of.sum);
  return out;
}

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
  std::string out;
  if (!model.empty())
    out += head("ostro_model_info", "gauge", "What is served; the value is always 1.") +
           fmt::format("ostro_model_info{{model=\"{}\",state=\"{}\"}} 1\n", label(model), label(state));
  out += head("ostro_requests_total", "counter", "Requests by path and status; 499: the client left before.");
  for (const auto& [key, value] : counts.answers)
    out += fmt::format("ostro_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", label(key.first), key.second,
                       value);
  out += one("ostro_prompt_tokens_total", "counter", "Tokens of prompts.", counts.prompt_tokens);
  out += one("ostro_generated_tokens_total", "counter", "Tokens of answers.", counts.made_tokens);
  out += one("ostro_reused_tokens_total", "counter",
             "Tokens of texts whose rows were kept from earlier ones.", counts.reused_tokens);
  out += one("ostro_preemptions_total", "counter", "Answers that gave up their memory and were run again.",
             counts.preempted);
  out += head("ostro_cache_pages", "gauge", "Pages of 128 positions: of running answers, kept, all.");
  for (const auto& [state, value] :
       {std::pair{"held", counts.cache.held}, {"kept", counts.cache.kept}, {"all", counts.cache.pages}})
    out += fmt::format("ostro_cache_pages{{state=\"{}\"}} {}\n", state, value);
  out += one("ostro_cache_bytes", "gauge", "Memory of all pages.", counts.cache.bytes);
  out += one("ostro_requests_running", "gauge", "Requests for text that the model works on.", counts.running);
  out += one("ostro_requests_waiting", "gauge", "Requests for text that wait for the model.",
             counts.taken - counts.running);
  out += histogram("ostro_time_to_first_token_seconds", "From a request's arrival to its first token.",
                   counts.first_token);
  out +=
      histogram("ostro_request_seconds", "From the arrival of a request for text to its end.", counts.whole);
  return out;
}

std::shared_ptr<http::Exchange> counted(std::shared_ptr<http::Exchange> exchange,
                                        std::shared_ptr<Metrics> metrics, std::string path) {
  return std::make_shared<CountedExchange>(std::move(exchange), std::move(metrics), std::move(path));
}

}  // namespace ostro::serve
