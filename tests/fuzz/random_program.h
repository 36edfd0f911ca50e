// Random legal Programs with inputs, for comparing engines bit for bit. Everything follows from the seed.
//
// A program mixes all ops but collectives over all dtypes they take, inside and outside scans, with feature
// leaves; about a third are differentiated. Values are kept moderate, so that nearly all outputs are finite.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/ir/program.h"
#include "ostro/runtime/buffer.h"

namespace ostro::fuzz {

struct RandomCase {
  ir::Program program;
  std::vector<runtime::Buffer> inputs;
  bool differentiated = false;
};

RandomCase random_case(uint64_t seed);

}  // namespace ostro::fuzz
