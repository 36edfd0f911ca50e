// meet, check_address: the steps before the connections of a group: all of its workers have arrived, and
// addresses can be resolved.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/key_value.h"

namespace ostro::dist {

using Deadline = std::chrono::steady_clock::time_point;

// The time left, at least one millisecond: to Gloo zero means for ever, and a negative time its default.
std::chrono::milliseconds left_until(Deadline deadline);

// Waits until all `size` workers have called this with the same prefix. An error names the worker that did
// not, or that has another `size`.
Status meet(int64_t rank, int64_t size, KeyValue& store, const std::string& prefix, Deadline deadline);

// An error if this host cannot resolve the name or number.
Status check_address(const std::string& bind);

}  // namespace ostro::dist
