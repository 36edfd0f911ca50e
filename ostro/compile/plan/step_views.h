// for_views, reads, writes: the views that a step and its epilogues read and write. Pure functions.
#pragma once

#include <algorithm>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {

// Calls f(view) for every operand and result. `f` may change the views where `step` is not const.
template <typename S, typename F>
void for_views(S& step, F&& f) {
  for (auto& v : step.in) f(v);
  for (auto& v : step.out) f(v);
  for (auto& epilogue : step.epilogues) for_views(epilogue, f);
}

inline bool reads(const Step& step, int32_t buffer) {
  return std::any_of(step.in.begin(), step.in.end(), [&](const View& v) { return v.buffer == buffer; }) ||
         std::any_of(step.epilogues.begin(), step.epilogues.end(),
                     [&](const Step& s) { return reads(s, buffer); });
}

inline bool writes(const Step& step, int32_t buffer) {
  return std::any_of(step.out.begin(), step.out.end(), [&](const View& v) { return v.buffer == buffer; }) ||
         std::any_of(step.epilogues.begin(), step.epilogues.end(),
                     [&](const Step& s) { return writes(s, buffer); });
}

}  // namespace ostro::compile
