// SamplePlan: the steps that have to be replayed to check those that were drawn. A value and pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace ostro::audit {

// Steps from + 1 to `to`, replayed from the state after `from` steps; the last of them was asked for.
struct Stretch {
  int64_t from = 0, to = 0;
  int64_t steps() const { return to - from; }
  bool operator==(const Stretch&) const = default;
};

struct SamplePlan {
  std::vector<int64_t> drawn;      // ascending
  std::vector<Stretch> stretches;  // ascending; no two begin at the same state
  int64_t steps() const;           // replayed in all
};

// Makes the plan that replays each drawn step, and those of `also`, from the newest state before it, no step
// twice. `states` are the numbers of steps, ascending, after which there is a state to begin from; the first
// is before all these steps.
SamplePlan plan_sample(const std::vector<int64_t>& states, const std::vector<int64_t>& drawn,
                       const std::vector<int64_t>& also = {});

}  // namespace ostro::audit
