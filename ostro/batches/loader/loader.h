// Loader: training batches as a pure function of (stores, options, step). A loader has no state to save: any
// step can be computed directly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/withheld.h"
#include "ostro/batches/order/batch_schedule.h"
#include "ostro/batches/order/mixture.h"
#include "ostro/batches/order/order.h"
#include "ostro/batches/packing/batch.h"
#include "ostro/batches/packing/sequence_reader.h"
#include "ostro/data/options/options.h"

namespace ostro::batches {

// The amount of a component that a run uses.
struct ComponentUse {
  std::string name;
  int64_t sequences = 0;  // in one epoch; fewer than `stored` with simulated epoching
  int64_t stored = 0;     // sequences in the store
  int64_t examples = 0;   // of the run
  size_t component = 0;   // its number, for Loader::reader
  double epochs() const { return static_cast<double>(examples) / static_cast<double>(sequences); }
};

// Training batches. Thread-safe.
class Loader {
 public:
  // `steps` is the length of the run, which data.stop_strategy needs; without it any step may be asked for.
  // Errors: a component has fewer sequences than training needs (names the tokens it has and the tokens
  // needed); the run is longer than the stop strategy allows (names the component and the steps it has).
  static Result<Loader> create(std::shared_ptr<const DataSet> data, const data::DataOptions& options,
                               int64_t seq_len, const config::Staged<int64_t>& batch_sizes, uint64_t seed,
                               std::optional<int64_t> steps = {});

  const BatchSchedule& schedule() const { return schedule_; }
  // The sequences of a component.
  const SequenceReader& reader(size_t component = 0) const { return *parts_[component].reader; }
  // False: the component has weight 0 in all stages.
  bool is_trained(size_t component) const { return parts_[component].order.has_value(); }
  const std::string& component_name(size_t component) const { return parts_[component].name; }
  // Sequences in one epoch of a component.
  int64_t sequences(size_t component = 0) const { return parts_[component].order->sequences(); }
  // The components that the first `steps` steps of a run use: those with a weight above 0 at one of these
  // steps.
  std::vector<ComponentUse> use(int64_t steps) const;

  // The source of an example of the run: the component, and the sequence in it.
  struct Place {
    size_t component = 0;
    int64_t sequence = 0;
  };
  Place place(int64_t example) const { return places(example, 1)[0]; }
  // The places of examples [first, first + count). Cheaper than asking for them one by one.
  std::vector<Place> places(int64_t first, int64_t count) const;

  // Where a sequence of a component is used: row `row` of the batch of `step`.
  struct Use {
    int64_t step = 0, row = 0, epoch = 0;
  };
  // How many epochs of a component the steps [first, end) have, cut ones among them.
  int64_t epochs(size_t component, int64_t first, int64_t end) const;
  // The uses of a sequence in the steps [first, end), in their order. Inverts order and mixture: the cost
  // does not depend on the steps between two uses.
  std::vector<Use> uses(size_t component, int64_t sequence, int64_t first, int64_t end) const;

  // The documents that batches leave out (data.without).
  const Withheld& withheld() const { return withheld_; }

  // The batch of a step >= 0. Costs at most a few chunk reads for each sequence. `threads` threads read and
  // decode; their number does not change the batch. More than one is for callers that have no Prefetcher.
  // `memory`: as make_batch.
  Result<Batch> batch(int64_t step, int threads = 1, Batch memory = {}) const {
    return rows(step, 0, schedule_.size(step), threads, std::move(memory));
  }
  // Only rows [begin, end) of that batch: a worker's share.
  Result<Batch> rows(int64_t step, int64_t begin, int64_t end, int threads = 1, Batch memory = {}) const;
  // A batch of the whole size, of which only these rows [first, second) are read; the others hold padding, or
  // the old content of `memory`.
  using Rows = std::vector<std::pair<int64_t, int64_t>>;
  Result<Batch> batch_with(int64_t step, const Rows& rows, int threads = 1, Batch memory = {}) const;

 private:
  struct Part {
    std::string name;
    std::shared_ptr<const SequenceReader> reader;
    std::optional<Subset> subset;
    std::optional<SequenceOrder> order;        // nothing: evaluation only
    std::shared_ptr<const PairScores> scores;  // null: none
  };
  explicit Loader(BatchSchedule schedule) : schedule_(std::move(schedule)) {}
  // Fills rows of a batch whose first row is row `begin` of its step.
  Status fill(Batch& batch, int64_t begin, const Rows& rows, int threads) const;
  Status check_countable(int64_t step) const;
  Status check_length(data::StopStrategy strategy, int64_t steps) const;
  // Of the examples of a component, those of the steps [first, end).
  std::pair<int64_t, int64_t> numbers_of(size_t component, int64_t first, int64_t end) const;
  // The number of the examples [0, end) that belong to each component.
  std::vector<int64_t> counts_before(int64_t end) const;

  BatchShape shape_;
  BatchSchedule schedule_;
  std::optional<Mixture> mixture_;  // nothing: one component
  Withheld withheld_;
  std::vector<Part> parts_;
};

}  // namespace ostro::batches
