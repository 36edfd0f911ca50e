#include "ostro/infer/step_budget.h"

#include <algorithm>
#include <bit>

#include "ostro/infer/row_runner.h"

namespace ostro::infer {
namespace {

constexpr int64_t kLeast = 16;
// What a measurement counts against those before it, and how what is not measured is forgotten, so that a
// size that was once slow is tried again.
constexpr double kNew = 0.3, kForgotten = 0.995;

size_t place_of(int64_t rows) { return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(rows)) - 1); }

}  // namespace

int64_t StepBudget::rows_within(double seconds) const {
  int64_t out = kLeast;
  while (out < most_rows_ && times_[place_of(out)] > 0 && times_[place_of(out)] <= seconds &&
         times_[place_of(2 * out)] <= seconds)
    out *= 2;
  return std::min(out, most_rows_);
}

int64_t StepBudget::rows() const {
  return rows_within(std::max(seconds_, kLeastSteps * times_[place_of(kLeast)]));
}

double StepBudget::time_of(int64_t rows) const {
  size_t at = place_of(padded_rows(rows));
  if (at < place_of(kLeast))
    while (at > 0 && times_[at] == 0) --at;
  return times_[at];
}

int64_t StepBudget::less_padding(int64_t rows, int64_t again) const {
  const int64_t whole = padded_rows(rows), part = whole / 2;
  if (rows == whole || part <= again) return rows;
  const double once = time_of(whole), first = time_of(part), rest = time_of(rows - part + again);
  return first > 0 && rest > 0 && first + rest < once ? part : rows;
}

// Fewer rows take no longer, so that a time of a busy machine does not stay where only larger steps are made.
void StepBudget::measured(int64_t rows, double seconds) {
  const size_t at = place_of(padded_rows(rows));
  times_[at] = times_[at] > 0 ? times_[at] + kNew * (seconds - times_[at]) : seconds;
  for (size_t i = place_of(kLeast); i < at; ++i)
    times_[i] = times_[i] > 0 ? std::min(times_[i], times_[at]) : times_[at];
  for (size_t i = at + 1; i < times_.size(); ++i) times_[i] *= kForgotten;
}

}  // namespace ostro::infer
