// How many examples each step of a run has, and which: batch sizes change at given steps.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/config/codec.h"

namespace ostro::data {

// A run's examples are numbered from 0, step after step. A value; pure and thread-safe.
class BatchSchedule {
 public:
  // Sizes of at least 1, as trainer.train_batch_size.
  explicit BatchSchedule(const config::Staged<int64_t>& sizes);

  // Of a step >= 0.
  int64_t size(int64_t step) const;
  // The first example of a step: how many the steps before it have. At the largest step whose examples can be
  // counted this is below 2^62.
  int64_t first_example(int64_t step) const;
  // The step that an example >= 0 is of.
  int64_t step_of(int64_t example) const;
  // Whether the examples of a step can be counted.
  bool is_countable(int64_t step) const;
  int64_t largest() const;
  bool is_constant() const { return stages_.size() == 1; }

 private:
  struct Stage {
    int64_t step = 0, example = 0;  // the first ones
    int64_t size = 0;
  };
  const Stage& at(int64_t step) const;

  std::vector<Stage> stages_;
};

}  // namespace ostro::data
