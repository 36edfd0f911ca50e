#include "ostro/batches/order/batch_schedule.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::batches {
namespace {

constexpr int64_t kLimit = int64_t{1} << 62;

// first + steps * size, limited to kLimit.
int64_t add_steps(int64_t first, int64_t steps, int64_t size) {
  return steps > (kLimit - first) / size ? kLimit : first + steps * size;
}

}  // namespace

BatchSchedule::BatchSchedule(const config::Staged<int64_t>& sizes) {
  for (const auto& [step, size] : sizes.stages) {
    OSTRO_CHECK(size >= 1, "batches of {} examples", size);
    const int64_t example =
        stages_.empty() ? 0
                        : add_steps(stages_.back().example, step - stages_.back().step, stages_.back().size);
    stages_.push_back({step, example, size});
  }
}

const BatchSchedule::Stage& BatchSchedule::at(int64_t step) const {
  OSTRO_CHECK(step >= 0, "step {}", step);
  return *std::prev(std::upper_bound(stages_.begin(), stages_.end(), step,
                                     [](int64_t s, const Stage& stage) { return s < stage.step; }));
}

int64_t BatchSchedule::size(int64_t step) const { return at(step).size; }

int64_t BatchSchedule::first_example(int64_t step) const {
  const Stage& stage = at(step);
  return add_steps(stage.example, step - stage.step, stage.size);
}

int64_t BatchSchedule::step_of(int64_t example) const {
  OSTRO_CHECK(example >= 0, "example {}", example);
  const Stage& stage =
      *std::prev(std::upper_bound(stages_.begin(), stages_.end(), example,
                                  [](int64_t e, const Stage& later) { return e < later.example; }));
  return stage.step + (example - stage.example) / stage.size;
}

bool BatchSchedule::is_countable(int64_t step) const { return first_example(step) <= kLimit - largest(); }

int64_t BatchSchedule::largest() const {
  int64_t largest = 0;
  for (const Stage& stage : stages_) largest = std::max(largest, stage.size);
  return largest;
}

}  // namespace ostro::batches
