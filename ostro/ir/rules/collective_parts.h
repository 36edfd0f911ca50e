// How collectives divide what they exchange. Engines, plans of memory and predictions of traffic agree by
// this.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::ir {

// Whether an all-reduce of x is done in parts: every worker joins one part of all values and sends the result
// to the others. It sends 2 (W - 1) / W of x instead of W - 1 times x, at the price of a second exchange.
bool reduces_in_parts(const Shape& x, int64_t workers);
// Part c of `count` elements in a row is [b[c], b[c + 1]) of the result b.
std::vector<int64_t> reduced_parts(int64_t count, int64_t workers);

// Bytes that the worker at `place` among the op's workers sends to the others when it runs the collective on
// x.
int64_t sent_bytes(const Op& op, const Shape& x, int64_t place);

}  // namespace ostro::ir
