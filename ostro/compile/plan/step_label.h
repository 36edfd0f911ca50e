// step_label, SpanIteration: the steps of a plan in a profile (base/profile.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/profile.h"
#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// "[batch:2, embed:64] f32, [embed:64] f32", the shapes of the views.
std::string shapes_text(const std::vector<View>& views);

// The label of a step's spans: its name, its place in the plan ("12.0.3": step 3 of region 0 of step 12), its
// shapes and costs.
SpanLabelPtr step_label(const Step& step, const std::string& program, const std::string& place);

// While it lives, the spans of this thread know the iteration of the loop that they are in. It is the
// LoopPlace of a PlanWalk (walk.h).
class SpanIteration {
 public:
  ~SpanIteration() { span_place().iteration = outer_; }
  static void set(int64_t iteration) { span_place().iteration = iteration; }

 private:
  int64_t outer_ = span_place().iteration;
};

}  // namespace ostro::compile
