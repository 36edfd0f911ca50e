// BatchSchedule: the examples of each step of a run. Batch sizes may change at given steps.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/config/codec.h"

namespace ostro::batches {

// Numbers a run's examples from 0, step after step. Copyable; thread-safe.
class BatchSchedule {
 public:
  // Sizes of at least 1, as trainer.train_batch_size.
  explicit BatchSchedule(const config::Staged<int64_t>& sizes);

  // Batch size of a step >= 0.
  int64_t size(int64_t step) const;
  // The first example of a step, which is the number of examples of all steps before it. At the largest step
  // whose examples can be counted this is below 2^62.
  int64_t first_example(int64_t step) const;
  // The step that has an example >= 0.
  int64_t step_of(int64_t example) const;
  // True if the examples of a step can be counted.
  bool is_countable(int64_t step) const;
  int64_t largest() const;
  bool is_constant() const { return stages_.size() == 1; }

 private:
  struct Stage {
    int64_t step = 0, example = 0;  // where the stage begins
    int64_t size = 0;
  };
  const Stage& at(int64_t step) const;

  std::vector<Stage> stages_;
};

}  // namespace ostro::batches
