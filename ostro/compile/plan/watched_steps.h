// watched_steps: which bytes of its parameters each step of a plan reads, and which bytes of its results are
// final after it (runtime::RunWatch). Pure functions; there are no errors.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// A parameter that a step reads, or a result that is final after it.
struct WatchedArray {
  int64_t index = 0;   // of the parameter or result
  int32_t buffer = 0;  // its number in Plan::buffers
  int64_t bytes = 0;
  // 0: all of it at once. Otherwise the step is a loop, and iteration i reads or writes only the bytes
  // [i, i + 1) * each.
  int64_t each = 0;
};
struct WatchedStep {
  std::vector<WatchedArray> reads, makes;
};

// By step of the plan; steps of nested plans belong to the step that has them.
std::vector<WatchedStep> watched_steps(const Plan& plan);

}  // namespace ostro::compile
