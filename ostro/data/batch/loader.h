// Training batches as a pure function of (stores, options, step). Nothing about a loader is ever saved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/data/batch/data_set.h"
#include "ostro/data/options/options.h"
#include "ostro/data/order/batch_schedule.h"
#include "ostro/data/order/mixture.h"
#include "ostro/data/order/order.h"
#include "ostro/data/packing/batch.h"
#include "ostro/data/packing/sequence_reader.h"

namespace ostro::data {

// What a run sees of a component.
struct ComponentUse {
  std::string name;
  int64_t sequences = 0;  // of an epoch, after simulated epoching cut it
  int64_t stored = 0;     // in the store
  int64_t examples = 0;   // of the run
  PackCounts packing;     // of the store; zeros for a stream
  double epochs() const { return static_cast<double>(examples) / static_cast<double>(sequences); }
};

// Training batches. Thread-safe.
class Loader {
 public:
  // `steps`: the length of the run, for data.stop_strategy; nothing: any step may be asked for. Errors: fewer
  // sequences in a component than it can be trained on (it names the tokens there are and the tokens needed);
  // a run longer than the stop strategy allows (it names the component and the steps there are).
  static Result<Loader> create(std::shared_ptr<const DataSet> data, const DataOptions& options,
                               int64_t seq_len, const config::Staged<int64_t>& batch_sizes, uint64_t seed,
                               std::optional<int64_t> steps = {});

  const BatchSchedule& schedule() const { return schedule_; }
  // The sequences of a component.
  const SequenceReader& reader(size_t component = 0) const { return *parts_[component].reader; }
  const std::string& component_name(size_t component) const { return parts_[component].name; }
  // Sequences of an epoch of a component.
  int64_t sequences(size_t component = 0) const { return parts_[component].order->sequences(); }
  // Components with a weight above 0 at some step, for the first `steps` steps of a run.
  std::vector<ComponentUse> use(int64_t steps) const;

  // The component and sequence of an example of the run.
  struct Place {
    size_t component = 0;
    int64_t sequence = 0;
  };
  Place place(int64_t example) const { return places(example, 1)[0]; }
  // Of the examples [first, first + count); cheaper than one by one.
  std::vector<Place> places(int64_t first, int64_t count) const;

  // The batch of a step >= 0. Cost: at most a few chunk reads a sequence. `threads` read and decode, for who
  // cannot wait (training has a Prefetcher); the batch is the same. `memory`: as make_batch.
  Result<Batch> batch(int64_t step, int threads = 1, Batch memory = {}) const {
    return rows(step, 0, schedule_.size(step), threads, std::move(memory));
  }
  // Only its rows [begin, end): what a worker needs.
  Result<Batch> rows(int64_t step, int64_t begin, int64_t end, int threads = 1, Batch memory = {}) const;

 private:
  struct Part {
    std::string name;
    std::shared_ptr<const SequenceReader> reader;
    std::optional<Subset> subset;
    std::optional<SequenceOrder> order;  // nothing: evaluation only
  };
  explicit Loader(BatchSchedule schedule) : schedule_(std::move(schedule)) {}
  Status check_length(StopStrategy strategy, int64_t steps) const;
  // Examples of each component in the examples [0, end).
  std::vector<int64_t> counts_before(int64_t end) const;

  int64_t seq_len_ = 0;
  bool segments_ = false;
  BatchSchedule schedule_;
  std::optional<Mixture> mixture_;  // nothing: one component
  std::vector<Part> parts_;
};

}  // namespace ostro::data
