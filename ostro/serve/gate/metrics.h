// Metrics: what a server has done and does, counted; metrics_text: the same in Prometheus' text format.
//
// Counters begin at 0 with the process. Times are seconds. Metrics is thread-safe; the rest are values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ostro/http/exchange.h"
#include "ostro/infer/row_runner.h"

namespace ostro::serve {

// How many values were at most each of the limits, as Prometheus has it.
struct Histogram {
  static constexpr std::array<double, 14> kLimits = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                     1,     2.5,  5,     10,   30,  60,   300};
  std::array<int64_t, kLimits.size()> at_most{};
  int64_t count = 0;
  double sum = 0;

  void add(double value);
};

struct Counts {
  std::map<std::pair<std::string, int>, int64_t> answers;  // by path and status; 499: the client left before
  int64_t prompt_tokens = 0, made_tokens = 0;              // of requests for text
  int64_t reused_tokens = 0;  // of prompt_tokens: whose rows were there from an earlier text
  int64_t preempted = 0;      // answers that gave up their memory and were run again
  infer::CacheFacts cache;
  int64_t taken = 0, running = 0;  // requests for text that are taken and not over; of these, that run
  Histogram first_token, whole;    // from a request's arrival to its first token, and to its end
};

class Metrics {
 public:
  void answered(const std::string& path, int status);
  void take();
  void drop();
  void begin(int64_t prompt_tokens);
  void token(double seconds_since_arrival, bool is_first);
  void reuse(int64_t tokens);
  void preempt();
  // The pages of this engine now; those of all engines are counted together. Without pages: it is gone.
  void cache(const void* engine, const infer::CacheFacts& facts);
  void end(double seconds_since_arrival);
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  Counts counts_;
  std::map<const void*, infer::CacheFacts> caches_;  // by engine
};

// `model` and `state`: labels that name what is served; empty: nothing yet.
std::string metrics_text(const Counts& counts, const std::string& model, const std::string& state);

// The same exchange; its answer, or that it has none, is counted under `path`.
std::shared_ptr<http::Exchange> counted(std::shared_ptr<http::Exchange> exchange,
                                        std::shared_ptr<Metrics> metrics, std::string path);

}  // namespace ostro::serve
