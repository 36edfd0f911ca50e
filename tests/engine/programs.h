// op_programs, make_inputs, difference: programs for the equality tests, inputs for them, and comparison by
// bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::testing {

struct NamedProgram {
  std::string name;
  ir::Program program;
  bool finite_only = false;  // its numerics promise nothing for infinities and NaN
};

// One or more programs for every op that an engine runs without collectives, leaves and odd sizes included.
std::vector<NamedProgram> op_programs();

// Values that reach the corners: normal numbers, zeros of both signs, denormals, infinities and NaN (when
// `wild`), small integers for i32, i64 and u32.
std::vector<runtime::Buffer> make_inputs(const ir::Program& program, uint64_t seed, bool wild);

// Empty when equal by bits (a NaN equals any NaN), else where they differ first.
std::string difference(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b);

}  // namespace ostro::testing
