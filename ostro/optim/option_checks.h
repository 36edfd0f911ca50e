// allowed, kMostClipSets: checks of single options, for the optimizers' validate().
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro::optim {

// The most sets of parameters that are clipped by norms of their own: groups, and all others.
inline constexpr size_t kMostClipSets = 16;

// Returns the error "section.key: value is not allowed; rule" unless `good`.
Status allowed(bool good, const std::string& section, const char* key, double value, const char* rule);
// Checks a decay rate of a mean: 0 or more and less than 1.
Status allowed_decay(const std::string& section, const char* key, double value);
Status allowed_positive(const std::string& section, const char* key, double value);
// Checks the decay rates and the epsilon of AdamW's two means.
Status allowed_adam(const std::string& section, double beta1, double beta2, double epsilon);

}  // namespace ostro::optim
