#include "ostro/audit/sample/plan.h"

#include <algorithm>
#include <set>

#include "ostro/base/check.h"

namespace ostro::audit {

int64_t SamplePlan::steps() const {
  int64_t sum = 0;
  for (const Stretch& s : stretches) sum += s.steps();
  return sum;
}

SamplePlan plan_sample(const std::vector<int64_t>& states, const std::vector<int64_t>& drawn,
                       const std::vector<int64_t>& also) {
  SamplePlan plan{drawn, {}};
  std::set<int64_t> wanted(drawn.begin(), drawn.end());
  wanted.insert(also.begin(), also.end());
  for (const int64_t step : wanted) {
    const auto behind = std::lower_bound(states.begin(), states.end(), step);
    OSTRO_CHECK(behind != states.begin(), "no state before step {}", step);
    const int64_t from = *(behind - 1);
    if (plan.stretches.empty() || plan.stretches.back().from != from)
      plan.stretches.push_back({from, step});
    else
      plan.stretches.back().to = step;
  }
  return plan;
}

}  // namespace ostro::audit
