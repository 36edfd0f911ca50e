// What comes before the connections of a group: all of its workers are there, and addresses make sense.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/key_value.h"

namespace ostro::dist {

using Deadline = std::chrono::steady_clock::time_point;

// At least one millisecond: to Gloo zero means for ever, and a negative time its default.
std::chrono::milliseconds left_until(Deadline deadline);

// Waits until all `size` workers have called this with the same prefix. An error names the worker that did
// not, or that thinks of another number of workers.
Status meet(int64_t rank, int64_t size, KeyValue& store, const std::string& prefix, Deadline deadline);

// An error if the name or number of a host means nothing to this one.
Status check_address(const std::string& bind);

}  // namespace ostro::dist
