// reduced_parts, sent_bytes: the division of what collectives exchange. Engines, plans of memory and
// predictions of traffic all use these functions, so they agree. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Returns whether an all-reduce of x is done in parts: every worker joins one part of all values and sends
// the result to the others. It sends 2 (W - 1) / W of x instead of W - 1 times x, at the price of a second
// exchange.
bool reduces_in_parts(const Shape& x, int64_t workers);
// The bounds b of `workers` parts of `count` elements: part c is [b[c], b[c + 1]).
std::vector<int64_t> reduced_parts(int64_t count, int64_t workers);

// Bytes that the worker at `place` among the op's workers sends to the others when it runs the collective on
// x; those of them that go to the worker at the place `to`.
int64_t sent_bytes(const Op& op, const Shape& x, int64_t place);
int64_t sent_bytes(const Op& op, const Shape& x, int64_t place, int64_t to);

}  // namespace ostro::ir
