// check_positive: the check that a number among the options of a decoder is positive. Pure functions.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "ostro/config/options.h"

namespace ostro::models {

// Returns an error that names `key` and the value when the value is not positive (NaN included). A value that
// is absent is no error.
inline Status check_positive(const char* key, int64_t value) {
  if (value >= 1) return {};
  return config::option_error(key, fmt::format("{} is not positive; use 1 or more", value));
}

inline Status check_positive(const char* key, double value) {
  if (value > 0) return {};
  return config::option_error(key, fmt::format("{} is not positive", value));
}

template <class T>
Status check_positive(const char* key, const std::optional<T>& value) {
  return value ? check_positive(key, *value) : Status();
}

}  // namespace ostro::models
