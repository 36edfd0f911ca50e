// Seeds: the seeds that follow from a registration, and the places of a plan where they stand. A plan has
// "$registration I" there, so what is registered does not depend on the seeds that follow from it. Values;
// pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ostro/config/node.h"

namespace ostro::lab {

// The largest number of seeds of a sweep.
inline constexpr int64_t kMostSeeds = 1000;

struct Seeds {
  std::string
      registration;    // SHA-256 of what is registered; empty: the seeds of a trial, which are 1, 2, ...
  std::string beacon;  // empty: none

  // Seed `number`, from 1: the first 8 bytes, the most significant first, of the SHA-256 of
  // "ostro registration seed 1", registration, beacon and number, each followed by "\n"; without the last
  // bit, so that it fits an option.
  int64_t of(int64_t number) const;
};

// N of "registration x N", the values of a sweep's variable; nothing for another text.
std::optional<int64_t> registration_seeds(const std::string& text);
// The value that stands for seed `number`.
config::Node seed_marker(int64_t number);
// Its number; nothing when the value is none.
std::optional<int64_t> marked_seed(const config::Node& value);
// Whether a value or one below it stands for a seed.
bool has_seeds(const config::Node& node);
// The node with the seeds themselves.
config::Node with_seeds(config::Node node, const Seeds& seeds);

}  // namespace ostro::lab
