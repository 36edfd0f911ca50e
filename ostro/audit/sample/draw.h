// drawn_steps, chance_to_find: the steps that a sampled audit replays, and its chance to find false ones
// (docs/reference/formats/chain.md, "Drawing steps"). Pure functions.
//
// The challenge is a text that is chosen after the run hash was published. So the maker of a run cannot know
// which steps will be drawn, and every reader of the audit can draw them again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::audit {

// Returns `count` different steps from `first` to `last`, both included, in ascending order. `head` is the
// run hash. Error: kInvalidArgument if there are fewer steps, count < 1, or the challenge is empty or has
// control characters.
Result<std::vector<int64_t>> drawn_steps(std::string_view head, std::string_view challenge, int64_t first,
                                         int64_t last, int64_t count);

// The chance that `drawn` different steps of `steps` hold at least one of `false_steps`, wherever these are:
// 1 - C(steps - false_steps, drawn) / C(steps, drawn).
double chance_to_find(int64_t steps, int64_t false_steps, int64_t drawn);

// The fractions of false steps for which reports give the chance, in thousandths.
inline constexpr int64_t kThousandths[] = {1, 10, 100};
// The number of steps that such a fraction of `steps` is; at least 1.
int64_t false_steps_of(int64_t steps, int64_t thousandths);

}  // namespace ostro::audit
