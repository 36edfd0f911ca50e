// Checks of single options, for the optimizers' validate().
#pragma once

#include "ostro/base/error.h"

namespace ostro::optim {

// Sets of parameters that are clipped by norms of their own: groups, and all others.
inline constexpr size_t kMostClipSets = 16;

// "optimizer.key: value is not allowed; rule", unless it is good.
Status allowed(bool good, const char* key, double value, const char* rule);
// A decay rate of a mean: 0 or more and less than 1.
Status allowed_decay(const char* key, double value);

}  // namespace ostro::optim
