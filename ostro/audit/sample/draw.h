// drawn_steps, chance_to_find: which steps a sampled audit replays, and what it would find
// (docs/reference/formats/chain.md, "Drawing steps"). Pure functions.
//
// The challenge is a text that is chosen after the run hash was published. So the maker of a run cannot know
// which steps are drawn, and anybody can draw them again.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::audit {

// `count` different steps of first to last, ascending. `head` is the run hash. Errors: kInvalidArgument if
// there are fewer steps, count < 1, or the challenge is empty or has control characters.
Result<std::vector<int64_t>> drawn_steps(std::string_view head, std::string_view challenge, int64_t first,
                                         int64_t last, int64_t count);

// The chance that `drawn` different steps of `steps` hold at least one of `false_steps`, wherever these are:
// 1 - C(steps - false_steps, drawn) / C(steps, drawn).
double chance_to_find(int64_t steps, int64_t false_steps, int64_t drawn);

// The fractions of false steps that reports name, in thousandths, and how many steps that are: at least one.
inline constexpr int64_t kThousandths[] = {1, 10, 100};
int64_t false_steps_of(int64_t steps, int64_t thousandths);

}  // namespace ostro::audit
