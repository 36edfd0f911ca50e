// Together: a served model that gets the requests of a workload while it runs, as they arrive.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ostro/serve/drawn_requests_for_test.h"
#include "workload.h"

namespace ostro::workloads {

// Asked what of a request is to be changed before it runs: a planted fault. `place` is its number.
using ChangeAsk = std::function<void(serve::Ask& ask, size_t place)>;

class Together {
 public:
  Together(serve::ServedModel model, double step_seconds, ChangeAsk change = {});
  // Models that share their rows; an arrival asks the one at the place of its adapter.
  Together(std::vector<serve::ServedModel> models, double step_seconds, ChangeAsk change = {});

  // The choices of each request, in their order; null for those whose clients leave. May be called again,
  // when what was kept of the requests before is still there.
  std::vector<Json> answers(const std::vector<Arrival>& arrivals);
  // The same in two calls, so that another model can run meanwhile.
  void begin(const std::vector<Arrival>& arrivals);
  std::vector<Json> finish();

  serve::Counts counts() const { return served_.metrics->counts(); }
  const serve::ServedModel& model() const { return served_.model; }

 private:
  struct Waiting {
    serve::Job job;
    std::shared_ptr<serve::KeptExchange> exchange;
    int64_t step = 0;
    bool stays = true;
  };

  std::vector<serve::ServedModel> counting(std::vector<serve::ServedModel> models);
  void on_step();               // on the engine's thread
  void push_until(size_t end);  // needs the lock

  ChangeAsk change_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;
  size_t pushed_ = 0;
  int64_t steps_ = 0;
  std::vector<serve::ServedModel> models_;  // but the first, which is that of served_, and moved from here
  serve::Served served_;                    // the last: its thread calls on_step()
};

}  // namespace ostro::workloads
