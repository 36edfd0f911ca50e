// found_within, binomial_interval: how often cross-checks must find a fault, for tests. Pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

namespace ostro::fleet {

// The probability that a fault which makes each leaf wrong with probability `fault` is found within `steps`
// steps of `leaves` leaves, of which each is checked with probability `check`
// (docs/guide/clusters/corruption.md).
inline double found_within(double fault, double check, int64_t steps, int64_t leaves) {
  return 1 - std::pow(1 - fault * check, static_cast<double>(steps * leaves));
}

// The numbers [first, second] of successes in `trials` with probability p between which at least `confidence`
// lies: outside of each end at most half of the rest.
inline std::pair<int64_t, int64_t> binomial_interval(int64_t trials, double p, double confidence) {
  const auto n = static_cast<double>(trials);
  const auto mass = [&](int64_t k) {
    const auto x = static_cast<double>(k);
    return std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                    (n - x) * std::log1p(-p));
  };
  const double tail = (1 - confidence) / 2;
  int64_t low = 0, high = trials;
  for (double below = mass(low); low < high && below <= tail; below += mass(low)) ++low;
  for (double above = mass(high); high > low && above <= tail; above += mass(high)) --high;
  return {low, high};
}

}  // namespace ostro::fleet
